/**
 * What a policy set is once its text has been read: complete, checked, without places.
 * `policy/` makes these from YAML; nothing here knows about text.
 */
import type { BranchRole, Size } from './compute.ts';
import type { ConnectionSource } from './connection-source.ts';
import type { ManualChanges, PartialDisruption } from './disruption.ts';
import type { TimeSpec } from './time-spec.ts';

/** Globs against ids or names; a `!` before a glob excludes. All keys that are given must match. */
export interface Selector {
  accounts?: readonly string[];
  projects?: readonly string[];
  branches?: readonly string[];
  computes?: readonly string[];
  regions?: readonly string[];
  types?: readonly ('read_write' | 'read_only')[];
  /** Roles of the branch, any of them. A compute whose branch is not known has none. */
  branchRoles?: readonly BranchRole[];
  /** A stable part of the computes, by hash of their ids: in (0, 1]. */
  share?: number;
  /** Computes younger than this are left alone. */
  minAgeMs: number;
}

/** What a schedule wants while a window is open, or outside. Absent: no opinion on that field. */
export interface ScheduleValues {
  size?: Size;
  /** Canonical seconds: −1 never, else 60..604800. */
  suspendTimeoutSeconds?: number;
}

export interface ScheduleWindow extends ScheduleValues {
  /** Open while any of these is open. */
  at: readonly TimeSpec[];
  /** In force by its start: raises begin this much earlier. */
  readyLeadMs?: number;
}

export interface PolicyBase {
  name: string;
  /** The file it was read from, as it was named. */
  file: string;
  owner?: string;
  mode: 'enforce' | 'observe';
  select: Selector;
  priority: number;
  /** When a change may disturb; what it leaves out is as the settings say. */
  disruption?: PartialDisruption;
  manualChanges?: ManualChanges;
}

export interface SchedulePolicy extends PolicyBase {
  kind: 'schedule';
  windows: readonly ScheduleWindow[];
  /** `leave`: no opinion; `baseline`: what the compute had when ebb first saw it. */
  otherwise: ScheduleValues | 'leave' | 'baseline';
}

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

/** One member for each kind of policy. */
export type Policy = SchedulePolicy | LimitsPolicy | HeadroomPolicy | RestartPolicy | FreezePolicy;

export interface PolicySet {
  /** In the order of the language: files in byte order of their paths, then as written. "Later" means in this order. */
  policies: readonly Policy[];
  /** Where counts of connections come from, by the name that headroom policies use. */
  sources: ReadonlyMap<string, ConnectionSource>;
  /** Identifies the meaning of the set: equal for equal policies, whatever the comments and blanks of their files. */
  hash: string;
}
