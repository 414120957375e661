import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { openEngine } from '../adapters/engine/open-engine.ts';
import { createStore } from '../adapters/store/create-store.ts';
import { createLog } from '../adapters/telemetry/log.ts';
import { createRedactor } from '../adapters/telemetry/redactor.ts';
import { createOperator } from '../app/operator/create-operator.ts';
import { requestReconciles } from '../app/triggers.ts';
import { messageOf } from '../common/errors.ts';
import type { Result } from '../common/result.ts';
import type { Engine } from '../ports/engine.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { Operator as OperatorPort } from '../ports/operator.ts';
import type { Store } from '../ports/store.ts';
import type { Log } from '../ports/telemetry.ts';
import { type Settings, secretsOf } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';
import { daemonOnceStarted, folderOf } from './daemon-file.ts';

export type Operator = OperatorPort;

const CLOSE_MS = 2_000;

export interface OperatorAccess {
  operator: Operator;
  /** `daemon`: a running daemon answers. `store`: the store was opened; if it is embedded, no daemon runs. */
  via: 'daemon' | 'store';
  close(): Promise<void>;
}

/** Opens an operator on the store of the settings, on the daemon that has an embedded store open, or on the daemon at a URL. */
export async function openOperator({
  settings,
  url,
  waitMs,
}: {
  settings: Settings;
  /** Asks the daemon there, with the token of the settings. */
  url?: string | undefined;
  /** Longest wait for a daemon that is starting, in real milliseconds. */
  waitMs?: number;
}): Promise<Result<OperatorAccess>> {
  if (url !== undefined) return { ok: true, value: await overHttp({ url, token: settings.token?.reveal() }) };
  const { redact } = createRedactor(secretsOf(settings));
  const log = createLog({ level: 'error', destination: process.stderr, pretty: false, redact });
  const { queue } = settings;
  if (queue.kind === 'embedded' && !existsSync(join(folderOf(queue), 'db'))) {
    const problem = `no daemon has used ${queue.shown} yet: start ebb run, or name its store with EBB_QUEUE_URL`;
    return { ok: false, problem };
  }
  const opening = await openEngine({ url: queue.url.reveal(), group: settings.group, log });
  if (!opening.ok) {
    if (opening.error.code !== 'in_use') return { ok: false, problem: opening.error.message };
    const daemon = await daemonOnceStarted(folderOf(queue), waitMs);
    if (daemon) return { ok: true, value: await overHttp(daemon) };
    const problem = `a daemon is starting on ${queue.shown}, or another command uses it: ask again in a few seconds`;
    return { ok: false, problem };
  }
  return { ok: true, value: await onStore(opening.engine, { log, settings }) };
}

async function overHttp({ url, token }: { url: string; token: string | undefined }): Promise<OperatorAccess> {
  const { createOperatorClient } = await import('../adapters/http/operator-client.ts');
  const operator = createOperatorClient({ url: url.replace(/\/+$/, ''), token, from: commandLineCaller().who });
  return { operator, via: 'daemon', close: async () => {} };
}

async function onStore(engine: Engine, { log, settings }: { log: Log; settings: Settings }): Promise<OperatorAccess> {
  const store = await createStore({ engine, log });
  const embedded = settings.queue.kind === 'embedded';
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
      if (!embedded) await requestReconciles({ queue: await openQueue() }, projectIds);
    },
    policies: () => policiesHere(settings, store),
  });
  return {
    operator: unavailableInstead(operator),
    via: 'store',
    close: async () => {
      await queue?.close(CLOSE_MS);
      await engine.close();
    },
  };
}

/** The policies in the settings of this machine; undefined if they can't be read, or there are none. */
async function policiesHere({ policies: paths, knownSources, teams, notify }: Settings, store: Store) {
  const { loadPolicySet } = await import('../policy/load.ts');
  const loaded = await loadPolicySet({ paths, knownSources, teams, receivers: notify.receivers, isComplete: true });
  if (!loaded.ok) return undefined;
  return { set: loaded.set, areCurrent: (await store.generation())?.setHash === loaded.set.hash };
}

/** Returns an error instead of throwing when the store goes away, as for a daemon that doesn't answer. */
function unavailableInstead(operator: Operator): Operator {
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
