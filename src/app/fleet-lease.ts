import type { Lease } from '../ports/store.ts';
import { LEASE_MS } from './apply.ts';
import type { DaemonContext } from './context.ts';
import { cannotWrite } from './policy-sets.ts';

const NAME = 'fleet';

/** How often the lease is attended to, in real milliseconds: it lives through several failures in a row. */
export const ATTEND_MS = 3_000;

/** Which daemon of a group keeps the picture of the whole fleet: it takes the inventory, and exports what is counted once. */
export interface FleetLease {
  /** The store serves this daemon only: what is stored, it has stored itself. */
  readonly isAlone: boolean;
  /** True for the one that keeps it. Of several daemons on one store one at most, but for as long as a lease holds. */
  isHeld(): boolean;
  /** Takes the lease if it is free, renews it if it is held. Throws if the store can't be asked: then all stays as it is. */
  attend(context: DaemonContext): Promise<void>;
  /** Leaves it to whoever comes next. */
  release(context: DaemonContext): Promise<void>;
}

/** Where the daemon is alone there is nobody to agree with: it holds the lease from the first time on. */
export function createFleetLease({ isAlone }: { isAlone: boolean }): FleetLease {
  let lease: Lease | undefined;
  let isHeld = false;

  function become(held: boolean, { telemetry: { log, metrics } }: DaemonContext): void {
    metrics.set('ebb_fleet_lease_held', {}, held ? 1 : 0);
    if (held === isHeld) return;
    isHeld = held;
    if (isAlone) return;
    if (held) log.info({ event: 'ebb.fleet_taken' }, 'this daemon keeps the picture of the fleet for its group');
    else log.info({ event: 'ebb.fleet_left' }, 'another daemon keeps the picture of the fleet for the group');
  }

  return {
    isAlone,
    isHeld: () => isHeld,
    // While the store can't be asked this throws, and whoever held the lease goes on: then nobody can take it over either, and
    // series that stop at an outage would be missed when they are needed most. Who alone is cut off stops when it is back.
    async attend(context) {
      const { store, holder } = context;
      if (isAlone) return become(true, context);
      if (lease && isOutdated(context)) {
        // On offer until the next time: who finds it free then is the only one, and better than nobody.
        await store.releaseLease(lease);
        lease = undefined;
        return;
      }
      const isRenewed = lease !== undefined && (await store.renewLease(lease, LEASE_MS));
      if (!isRenewed) lease = await store.acquireLease(NAME, holder, LEASE_MS);
      become(lease !== undefined, context);
    },
    async release(context) {
      if (lease) await context.store.releaseLease(lease);
      lease = undefined;
    },
  };
}

/** What it would export of computes is by a wrong time, or by policies that no longer count. */
function isOutdated(context: DaemonContext): boolean {
  const blocked = cannotWrite(context);
  return blocked === 'clock_off' || blocked === 'superseded';
}
