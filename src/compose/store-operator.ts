import { randomUUID } from 'node:crypto';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { createStore } from '../adapters/store/create-store.ts';
import { createOperator } from '../app/operator/create-operator.ts';
import { requestReconciles } from '../app/triggers.ts';
import { messageOf } from '../common/errors.ts';
import type { Engine } from '../ports/engine.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { Operator } from '../ports/operator.ts';
import type { Store } from '../ports/store.ts';
import type { Log } from '../ports/telemetry.ts';
import type { Settings } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';
import { noteIfUnused } from './store.ts';

/** Longest wait for the queue to close, in real milliseconds. A command only adds jobs. */
const CLOSE_MS = 2_000;

/** Opens an operator on a store. `close` also closes the engine. */
export async function openStoreOperator(
  engine: Engine,
  { log, settings }: { log: Log; settings: Settings },
): Promise<{ operator: Operator; via: 'store'; unusedNote?: string | undefined; close(): Promise<void> }> {
  const store = await createStore({ engine, log });
  const isEmbedded = settings.queue.kind === 'embedded';
  let queue: JobQueue | undefined;
  // Loaded on use, since BullMQ takes longer to load than most commands run, and few of them add a job.
  async function openQueue(): Promise<JobQueue> {
    const { createJobQueue } = await import('../adapters/queue/job-queue.ts');
    queue ??= createJobQueue({ engine, clock: systemClock(), log, onFailed: () => {} });
    return queue;
  }
  const operator = createOperator({
    store,
    log,
    clock: systemClock(),
    newId: randomUUID,
    holder: randomUUID(),
    caller: commandLineCaller(),
    now: () => store.timeMs(),
    requestReconciles: async (projectIds) => {
      // No daemon runs on an embedded store that a command has open, and the next one reconciles everything when it starts.
      if (!isEmbedded) await requestReconciles({ queue: await openQueue() }, projectIds);
    },
    policies: () => localPolicies(settings, store),
    owners: settings.owners,
  });
  return {
    operator: withoutThrowing(operator),
    via: 'store',
    unusedNote: await noteIfUnused(store, settings),
    close: async () => {
      await queue?.close(CLOSE_MS);
      await engine.close();
    },
  };
}

/** The policies that the settings of this machine name. Undefined if there are none, or if they can't be read. */
async function localPolicies(settings: Settings, store: Store) {
  const { loadPolicySet } = await import('../policy/load.ts');
  const loaded = await loadPolicySet({ paths: settings.policies, settings, isComplete: true });
  if (!loaded.ok) return undefined;
  return { set: loaded.set, areCurrent: (await store.generation())?.setHash === loaded.set.hash };
}

/** Returns the error `unavailable` instead of throwing if the store fails, like an operator of a daemon that doesn't answer. */
function withoutThrowing(operator: Operator): Operator {
  const methods = Object.entries(operator).map(([name, ask]) => [
    name,
    async (query: never) => {
      try {
        return await ask(query);
      } catch (error) {
        return { ok: false, error: { code: 'unavailable', message: messageOf(error) } };
      }
    },
  ]);
  return Object.fromEntries(methods) as Operator;
}
