/** When changes that disconnect clients may be made, and how manual changes are respected. Durations are milliseconds. */

/** The condition of a change: none, the compute asleep, or few connections. */
export type Moment = 'any' | 'idle' | 'quiet';

export interface DisruptionRule {
  when: Moment;
  /** The longest wait for the moment, from the start of the window; absent: for ever. */
  deadlineMs?: number;
  /** The result of the deadline; `skip` lasts until the next boundary. */
  atDeadline: 'apply' | 'skip';
}

/** A share in (0, 1] of the computes of a policy, and the time in which no more may be disturbed, in milliseconds. */
export interface AtMost {
  share: number;
  windowMs: number;
}

export interface Disruption {
  raise: DisruptionRule;
  lower: DisruptionRule;
  /** Fewer connections than this are `quiet`. */
  quietBelow: number;
  /** Between two changes that restart the same compute. */
  cooldownMs: number;
  /** Share of the computes of a policy that may be disturbed at once, in (0, 1]. */
  atOnce: number;
  /** Share of the computes of a policy that may be disturbed within a time; absent: as many as `atOnce` lets through. */
  atMost?: AtMost;
  /** An active compute that was just discovered waits for its next boundary, or is changed like any other. */
  newlyDiscovered: 'wait' | 'act';
}

/** The part that a policy, or the settings, define; the rest has the defaults of the level below. */
export type PartialDisruption = Partial<Disruption>;

/** Manual changes are respected until the next boundary, for a while, or not at all. */
export type ManualChanges = { kind: 'respect' } | { kind: 'respect-for'; forMs: number } | { kind: 'revert' };

/** Defaults where neither a policy nor the settings say anything. Source: docs/policies.md, "When a change may be made". */
const DEFAULT_DISRUPTION: Disruption = {
  raise: { when: 'any', atDeadline: 'apply' },
  lower: { when: 'idle', deadlineMs: 2 * 60 * 60_000, atDeadline: 'apply' },
  quietBelow: 3,
  cooldownMs: 10 * 60_000,
  atOnce: 0.1,
  newlyDiscovered: 'wait',
};

/** The rules for a change: the policy's, then the settings', then the defaults. */
export function resolveDisruption(...mostImportantFirst: readonly (PartialDisruption | undefined)[]): Disruption {
  return Object.assign({}, DEFAULT_DISRUPTION, ...mostImportantFirst.toReversed());
}
