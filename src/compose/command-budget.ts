import { createGroupBudget, createReadingBudget } from '../adapters/control-api/group-budget.ts';
import { lockHolder } from '../adapters/engine/folder-lock.ts';
import { isLoopbackHost } from '../common/loopback.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import type { Clock } from '../ports/clock.ts';
import type { Engine } from '../ports/engine.ts';
import type { RateBudget } from '../ports/rate-budget.ts';
import type { Settings } from '../settings/settings.ts';
import { folderOf } from './daemon-file.ts';
import { SILENT_LOG } from './store.ts';

interface CommandBudget {
  budget: RateBudget;
  close(): Promise<void>;
}

interface CommandBudgetOptions {
  settings: Settings;
  clock: Clock;
  /** The engine that the daemons share, if the caller has it open. Otherwise the command opens it. */
  engine?: Engine | undefined;
  /** True: the command may also use the share of `api_reserve`. */
  usesReserve?: boolean;
}

/**
 * Opens the rate budget of a command: that of the daemons, from their store. If the store is embedded, or can't be opened, the command has its
 * own: a part of the limit, or the whole limit on an emulator without a daemon.
 */
export async function openCommandBudget(options: CommandBudgetOptions): Promise<CommandBudget> {
  const { settings, clock, engine, usesReserve = false } = options;
  const { queue, apiUrl } = settings;
  const limits = limitsOf(settings.apiRequestsPerMinute, usesReserve ? 0 : settings.apiReserve);
  const isEmbedded = queue.kind === 'embedded';
  const opened = isEmbedded || engine ? undefined : await openShared(settings);
  const shared = isEmbedded ? undefined : (engine ?? opened);
  const close = async () => opened?.close();
  if (shared) {
    try {
      return { budget: await createGroupBudget({ engine: shared, limits, clock }), close };
    } catch {
      // The command goes on with a budget of its own.
      await close();
    }
  }
  const isAlone = isEmbedded && !isOpenElsewhere(settings) && isLoopbackHost(new URL(apiUrl).hostname);
  return { budget: createReadingBudget({ alone: isAlone, limits, clock }), close: async () => {} };
}

/** True if another process has the embedded store open. */
function isOpenElsewhere({ queue }: Settings): boolean {
  const holder = lockHolder(folderOf(queue));
  return holder !== undefined && holder !== process.pid;
}

async function openShared({ queue, group }: Settings): Promise<Engine | undefined> {
  const { openEngine } = await import('../adapters/engine/open-engine.ts');
  const opening = await openEngine({ url: queue.url.reveal(), group, log: SILENT_LOG });
  return opening.ok ? opening.engine : undefined;
}

/** Requests that have waited this long, in milliseconds, get their usual priority. More than a minute, since the reads may use up its limit. */
const PATIENT_MS = 75_000;

/** Wraps a budget for reads of a whole fleet. They have background priority at first, so that more urgent requests get part of each minute. */
export function patient(budget: RateBudget, clock: Pick<Clock, 'wait'>): RateBudget {
  return {
    ...budget,
    async acquire(request, signal) {
      const isDone = new AbortController();
      const patience = new AbortController();
      const stop = AbortSignal.any([signal, isDone.signal]);
      clock.wait(PATIENT_MS, stop, { ref: false }).then(
        () => patience.abort(),
        () => {},
      );
      try {
        const either = AbortSignal.any([signal, patience.signal]);
        return await budget.acquire({ ...request, priority: 'background' }, either);
      } catch (error) {
        if (signal.aborted || !patience.signal.aborted) throw error;
        return await budget.acquire(request, signal);
      } finally {
        isDone.abort();
      }
    },
  };
}
