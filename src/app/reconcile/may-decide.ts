/** The conditions, besides a usable reading, under which this daemon may decide about a project. */
import type { Clock } from '../../ports/clock.ts';
import type { StoreClock } from '../group/clock-skew.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import { requestReconcile, type TriggerDeps, wakeAt } from '../triggers.ts';

export interface MayDecideDeps extends TriggerDeps {
  clock: Pick<Clock, 'now'>;
  storeClock: Pick<StoreClock, 'excessiveOffsetMs'>;
  storeWatch: Pick<StoreWatch, 'waitMs'>;
}

/** Returns true if this daemon may decide now. Otherwise requests another reconcile and returns false. */
export async function mayDecide(deps: MayDecideDeps, projectId: string): Promise<boolean> {
  // With a wrong clock, a change without an answer could count as lost while it may still take effect.
  if ((await deps.storeClock.excessiveOffsetMs()) !== undefined) {
    await requestReconcile(deps, projectId);
    return false;
  }
  // After a loss of the store, a change by a daemon that has not written it back yet would look like a person's.
  const waitMs = deps.storeWatch.waitMs();
  if (waitMs > 0) await wakeAt(deps, projectId, deps.clock.now() + waitMs);
  return waitMs === 0;
}
