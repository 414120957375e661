import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

/** Its name in the store. */
export const LEADER_LEASE = 'fleet';

/** Interval of attempts to get or renew the lease, in real milliseconds: the lease outlives several failures in a row. */
export const ATTEND_MS = 3_000;

/** The reason why an enforcing daemon writes nothing. */
export type WriteBlock = 'clock_off' | 'staged' | 'superseded';

/** The leader of a group reads the inventory and exports the metrics of the whole fleet. */
export interface LeaderLease {
  /** The store serves this daemon only. */
  readonly isAlone: boolean;
  /** True for the leader. Of several daemons on one store at most one, except for as long as a lease lasts. */
  isHeld(): boolean;
  /** Takes the lease if it is free, renews it if it is held. Throws if the store can't be asked: then all stays as it is. */
  attend(): Promise<void>;
  /** Gives it up, for the next daemon. */
  release(): Promise<void>;
}

export interface LeaderLeaseDeps {
  isAlone: boolean;
  store: Store;
  telemetry: Telemetry;
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
  /** The last known reason for which this daemon may not write. */
  blocked(): WriteBlock | undefined;
}

/** A daemon that is alone holds the lease from the start. */
export function createLeaderLease({ isAlone, store, telemetry, holder, blocked }: LeaderLeaseDeps): LeaderLease {
  const { log, metrics } = telemetry;
  let lease: Lease | undefined;
  let isHeld = false;

  function become(held: boolean): void {
    metrics.set('ebb_leader', {}, held ? 1 : 0);
    if (held === isHeld) return;
    isHeld = held;
    if (isAlone) return;
    if (held) log.info({ event: 'ebb.leader_acquired' }, 'this daemon is the leader of its group');
    else log.info({ event: 'ebb.leader_lost' }, 'another daemon is the leader of the group');
  }

  return {
    isAlone,
    isHeld: () => isHeld,
    // While the store is away this throws, and the daemon that held the lease goes on: nobody can take it over either, and series that
    // stop at an outage would be missed when they are needed most. A leader that alone is cut off stops when it is back.
    async attend() {
      if (isAlone) return become(true);
      if (lease && isOutdated(blocked())) {
        // Offers the lease until the next time: a daemon that finds it free is the only one, and better than none.
        await store.releaseLease(lease);
        lease = undefined;
        return;
      }
      const isRenewed = lease !== undefined && (await store.renewLease(lease, RECOVERY.leaderLeaseMs));
      if (!isRenewed) lease = await store.acquireLease(LEADER_LEASE, holder, RECOVERY.leaderLeaseMs);
      become(lease !== undefined);
    },
    async release() {
      if (lease) await store.releaseLease(lease);
      lease = undefined;
    },
  };
}

/** The daemon's metrics of computes would be wrong: its clock is off, or its policies are no longer current. */
function isOutdated(block: WriteBlock | undefined): boolean {
  return block === 'clock_off' || block === 'superseded';
}
