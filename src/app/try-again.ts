import type { Clock } from '../ports/clock.ts';
import type { Fleet } from './fleet/fleet.ts';
import { type TriggerDeps, wakeAt } from './triggers.ts';

/**
 * Schedules a reconcile of a project that could not be locked, read or changed, after `afterMs`. Does nothing if this daemon has already
 * scheduled an earlier retry: otherwise each trigger in the meantime would start its own series of retries.
 */
export async function tryAgain(
  deps: TriggerDeps & { clock: Pick<Clock, 'now'>; fleet: Pick<Fleet, 'retryAtMs'> },
  projectId: string,
  afterMs: number,
): Promise<void> {
  const { retryAtMs } = deps.fleet;
  const nowMs = deps.clock.now();
  const nextMs = retryAtMs.get(projectId) ?? 0;
  const instantMs = nowMs + afterMs;
  if (nextMs > nowMs && nextMs <= instantMs) return;
  await wakeAt(deps, projectId, instantMs);
  retryAtMs.set(projectId, instantMs);
}
