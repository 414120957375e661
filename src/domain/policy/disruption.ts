/** Rules for changes that disconnect clients, and for respecting manual changes. Durations are milliseconds. */
import { HOUR_MS, MINUTE_MS } from '../time/units.ts';

/** The condition for a change: none, a sleeping compute, or few connections. */
export type Moment = 'any' | 'idle' | 'quiet';

export interface DisruptionRule {
  when: Moment;
  /** The longest wait for the condition. It begins when the window starts, or when the value becomes wanted if that is later. Absent: for ever. */
  deadlineMs?: number;
  /** The action at the deadline; `skip` lasts until the next boundary. */
  atDeadline: 'apply' | 'skip';
}

/** The largest share, in (0, 1], of a policy's computes that may be disturbed within a time window. */
export interface AtMost {
  share: number;
  windowMs: number;
}

export interface Disruption {
  raise: DisruptionRule;
  lower: DisruptionRule;
  /** The condition `quiet` means fewer connections than this. */
  quietBelow: number;
  /** The minimum time between two restarts of the same compute. */
  cooldownMs: number;
  /** The share, in (0, 1], of a policy's computes that may be disturbed at once. */
  atOnce: number;
  /** The limit of disturbed computes within a time window; absent: only `atOnce` limits. */
  atMost?: AtMost;
  /** `wait`: an active, newly discovered compute waits for its next boundary; `act`: it is changed like any other. */
  newlyDiscovered: 'wait' | 'act';
}

/** The fields that a policy or the settings define. Fields that a policy leaves out are as in the settings, others have ebb's defaults. */
export type PartialDisruption = Partial<Disruption>;

/** Manual changes are respected until the next boundary, for a while, or not at all. */
export type ManualChanges = { kind: 'respect' } | { kind: 'respect-for'; forMs: number } | { kind: 'revert' };

/** The defaults of ebb. Source: docs/policies.md, "When a change may be made". */
const DEFAULT_DISRUPTION: Disruption = {
  raise: { when: 'any', atDeadline: 'apply' },
  lower: { when: 'idle', deadlineMs: 2 * HOUR_MS, atDeadline: 'apply' },
  quietBelow: 3,
  cooldownMs: 10 * MINUTE_MS,
  atOnce: 0.1,
  newlyDiscovered: 'wait',
};

/** True if a raise or a lowering waits until few connections are open. */
export function waitsForQuiet({ raise, lower }: PartialDisruption): boolean {
  return raise?.when === 'quiet' || lower?.when === 'quiet';
}

/** Combines the rules for a change: the policy's rules first, then the settings', then the defaults. */
export function resolveDisruption(...mostImportantFirst: readonly (PartialDisruption | undefined)[]): Disruption {
  return Object.assign({}, DEFAULT_DISRUPTION, ...mostImportantFirst.toReversed());
}
