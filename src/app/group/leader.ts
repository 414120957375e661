import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Lease } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { LeaseDeps } from '../leases/locked-project.ts';

/** The name of the lease in the store. */
export const LEADER_LEASE = 'fleet';

/** Interval of attempts to get or renew the lease, in real milliseconds. A held lease outlives several failed attempts. */
export const ATTEMPT_EVERY_MS = 3_000;

/** A reason why an enforcing daemon writes nothing. */
export type WriteBlock = (typeof WRITE_BLOCKS)[number];
export const WRITE_BLOCKS = ['clock_off', 'staged', 'superseded'] as const;

/** The lease of a group's leader, which reads the inventory and exports the metrics of the whole fleet. */
export interface LeaderLease {
  /** True if the store serves this daemon only. */
  readonly isAlone: boolean;
  /** Returns true for the leader. There may be two for a while: a leader that is cut off stops leading only when it reaches the store again. */
  isHeld(): boolean;
  /** Takes the lease if it is free, or renews it if held. Throws if the store can't be reached; then nothing changes. */
  attend(): Promise<void>;
  release(): Promise<void>;
}

/** Creates the lease. A daemon that has the store for itself holds it from the first attempt. */
export function createLeaderLease({
  isAlone,
  store,
  telemetry: { log, metrics },
  holder,
  blocked,
}: LeaseDeps & {
  isAlone: boolean;
  telemetry: Telemetry;
  /** The last known reason for which this daemon may not write. */
  blocked(): WriteBlock | undefined;
}): LeaderLease {
  let lease: Lease | undefined;
  let isHeld = false;

  function setHeld(held: boolean): void {
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
    // While the store is unreachable, this throws, and the leader keeps leading. In an outage of the store nobody can take over, and the
    // leader's metrics are needed most.
    async attend() {
      if (isAlone) return setHeld(true);
      if (lease && shouldStepDown(blocked())) {
        // Offers the lease to others until the next attempt. If it is still free then, this daemon takes it again.
        await store.releaseLease(lease);
        lease = undefined;
        return;
      }
      const isRenewed = lease !== undefined && (await store.renewLease(lease, RECOVERY.leaderLeaseMs));
      if (!isRenewed) lease = await store.acquireLease(LEADER_LEASE, holder, RECOVERY.leaderLeaseMs);
      setHeld(lease !== undefined);
    },
    async release() {
      if (lease) await store.releaseLease(lease);
      lease = undefined;
    },
  };
}

/** Returns true if this daemon's metrics of computes would be wrong, since its clock is off or its policies are superseded. */
function shouldStepDown(block: WriteBlock | undefined): boolean {
  return block === 'clock_off' || block === 'superseded';
}
