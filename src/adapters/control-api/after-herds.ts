import type { Clock } from '../../ports/clock.ts';
import type { ControlApi } from '../../ports/control-api.ts';

/** A time in which an account's changes need the rate limit. Instants are milliseconds since the epoch. */
export interface BusyTime {
  fromMs: number;
  untilMs: number;
  /** What happens then, for people. */
  reason: string;
}

/**
 * Wraps an API for a command that reads many projects. In a busy time the wrapped calls wait, except for usage, which has a rate limit of its
 * own. `onWait` is called once for each busy time.
 */
export function afterHerds(
  api: ControlApi,
  {
    busyTimes,
    clock,
    onWait,
  }: { busyTimes: readonly BusyTime[]; clock: Pick<Clock, 'now' | 'sleepUntil'>; onWait(busy: BusyTime): void },
): ControlApi {
  const reported = new Set<BusyTime>();
  const ends = new AbortController();

  async function waitWhileBusy(signal: AbortSignal = ends.signal): Promise<void> {
    const busy = busyTimes.find(({ fromMs, untilMs }) => fromMs <= clock.now() && clock.now() < untilMs);
    if (!busy) return;
    if (!reported.has(busy)) onWait(busy);
    reported.add(busy);
    // If the wait was aborted, the API call that follows returns that error.
    const isOver = await clock.sleepUntil(busy.untilMs, signal).then(
      () => true,
      () => false,
    );
    if (isOver) await waitWhileBusy(signal);
  }

  return {
    ...api,
    async *listProjects(options) {
      await waitWhileBusy(options?.signal);
      yield* api.listProjects(options);
    },
    async listComputes(project, options) {
      await waitWhileBusy(options?.signal);
      return api.listComputes(project, options);
    },
    async projectPeriod(project, options) {
      await waitWhileBusy(options?.signal);
      return api.projectPeriod(project, options);
    },
    async *listBranches(projectId, options) {
      await waitWhileBusy(options?.signal);
      yield* api.listBranches(projectId, options);
    },
    async *listOperations(projectId, options) {
      await waitWhileBusy(options?.signal);
      yield* api.listOperations(projectId, options);
    },
    async operationsFrom(project, cursor, options) {
      await waitWhileBusy(options?.signal);
      return api.operationsFrom(project, cursor, options);
    },
    async close() {
      ends.abort();
      await api.close();
    },
  };
}
