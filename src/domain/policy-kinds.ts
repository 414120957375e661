/** Kinds of policies that are read and checked; each becomes a member of `Policy` when there is a rule that acts on it. */
import type { PolicyBase, SchedulePolicy } from './policy.ts';
import type { TimeSpec } from './time-spec.ts';

/** Clamps what schedules want. Absent bounds do not bound. */
export interface LimitsPolicy extends PolicyBase {
  kind: 'limits';
  size?: { minCu?: number; maxCu?: number };
  /** Canonical seconds; −1, never, is longer than any other. */
  suspendTimeout?: { minSeconds?: number; maxSeconds?: number };
  /** Wins over headroom and over what a person set. */
  hard: boolean;
}

/** Raises the maximum so that connections stay free. Shares are in (0, 1]. */
export interface HeadroomPolicy extends PolicyBase {
  kind: 'headroom';
  /** Name of the source of connection counts. */
  connections: string;
  targetShare: number;
  /** From here on a raise does not wait. */
  criticalShare?: number;
  maxCu: number;
  mayRaiseMin: boolean;
  /** How long less must have been enough before it goes back. */
  scaleDownAfterMs: number;
  act: 'apply' | 'advise';
}

/** Restarts computes, for the platform's updates. */
export interface RestartPolicy extends PolicyBase {
  kind: 'restart';
  at: readonly TimeSpec[];
  /** Not again before this has passed since the last start. */
  everyMs?: number;
  /** Only while fewer connections than this are open. */
  connectionsBelow?: number;
}

/** Nothing is written while it is open, except raises where they are allowed. */
export interface FreezePolicy extends PolicyBase {
  kind: 'freeze';
  at: readonly TimeSpec[];
  allowRaise: boolean;
}

export type AnyPolicy = SchedulePolicy | LimitsPolicy | HeadroomPolicy | RestartPolicy | FreezePolicy;
