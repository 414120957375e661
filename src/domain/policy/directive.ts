/**
 * Directives state what a policy wants at an instant, for every compute that it selects. They contain everything that the stages of a decision
 * need: of the policy itself, stages read only the fields that all kinds have.
 */

import type { FieldGroup, Size } from '../compute/compute.ts';
import type { Range } from '../estimate.ts';
import type { GuardRemedy } from '../records/compute-record.ts';
import type { BudgetTerms } from '../spend/terms.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import type { TrialDesign } from '../trial/assignment.ts';
import type { PartialDisruption } from './disruption.ts';
import type { PolicyBase } from './policy-base.ts';
import type { ComputeWave } from './waves.ts';

/** A value, or the compute's baseline: what it had when ebb first saw it, or what a person has set since. */
export type ProposedValue<T> = T | 'baseline';

interface FromPolicy {
  policy: PolicyBase;
  /** Place of the policy in its set; of equal policies the later one wins. */
  policyIndex: number;
}

/** The values that one window of a policy, or its `otherwise`, proposes at an instant. */
export interface ProposedValues extends FromPolicy {
  type: 'values';
  /** An open absolute interval, an open recurring window, or the policy's `otherwise`. */
  source: 'absolute' | 'recurring' | 'otherwise';
  /** Index of the window in its policy; −1 for `otherwise`. */
  windowIndex: number;
  /** The times of the window; absent for `otherwise`. */
  at?: readonly TimeSpec[];
  /** When the window opened, milliseconds since the epoch; absent for `otherwise`. */
  openSinceMs?: number;
  /** Set if the window opens only at {@link openSinceMs}, but raises already begin. */
  startsEarly?: true;
  /** For windows with waves: the lead in milliseconds for computes whose wave is unknown. */
  leadWithoutWavesMs?: number;
  /** The wave of the compute concerned, if known. */
  wave?: ComputeWave;
  size?: ProposedValue<Size>;
  suspendTimeoutSeconds?: ProposedValue<number>;
}

const SOURCE_RANK = { absolute: 1, recurring: 0, otherwise: 0 } as const;

/**
 * Sorts proposals by precedence, the winner first: an open window before any `otherwise`, then the highest priority, then an absolute
 * interval before a recurring window, then the later policy, and within a policy the later window.
 */
export function compareProposals(a: ProposedValues, b: ProposedValues): number {
  return (
    Number(b.source !== 'otherwise') - Number(a.source !== 'otherwise') ||
    b.policy.priority - a.policy.priority ||
    SOURCE_RANK[b.source] - SOURCE_RANK[a.source] ||
    b.policyIndex - a.policyIndex ||
    b.windowIndex - a.windowIndex
  );
}

/** The bounds of groups of fields: CU, or seconds with "never" as infinity. */
export type Ranges = { readonly [G in FieldGroup]?: Range };

/** Clamps the values of earlier stages. */
export interface Bounds extends FromPolicy {
  type: 'bounds';
  ranges: Ranges;
  /** True for hard limits, which take precedence over headroom and manual changes. */
  hard: boolean;
}

/** A requirement for free connections. Shares are in (0, 1]. */
export interface ConnectionNeed {
  /** Name of the source of connection counts. */
  connections: string;
  targetShare: number;
  /** From this share of used connections on, a raise does not wait. */
  criticalShare?: number;
  /** The largest maximum to which the size is raised. */
  maxCu: number;
  mayRaiseMin: boolean;
  /** The size is lowered only after a smaller one would have sufficed for this long. */
  scaleDownAfterMs: number;
  act: 'apply' | 'advise';
}

export interface Need extends FromPolicy {
  type: 'need';
  need: ConnectionNeed;
}

export interface RestartWindow extends FromPolicy {
  type: 'restart';
  /** Milliseconds since the epoch. */
  openSinceMs: number;
  /** The minimum time since the last start, in milliseconds. */
  everyMs?: number;
  /** Restarts only while fewer connections than this are open. */
  connectionsBelow?: number;
}

/** Stops all writes now, except raises if `allowRaise` is set. */
export interface FreezeWindow extends FromPolicy {
  type: 'freeze';
  allowRaise: boolean;
  /** The end of the freeze, milliseconds since the epoch; absent if none was found. */
  untilMs?: number;
}

/** The policies that a trial withdraws, and the assignment of computes. */
export interface TrialTerms {
  /** Names of the policies that have no effect in the control group. */
  of: readonly string[];
  /** The drawn unit: a whole project, or a branch. */
  unit: 'project' | 'branch';
  design: TrialDesign;
  /** A hash of everything that must not change while the trial runs: seed, control, unit, rotate, from, zone and of. */
  digest: string;
  /** Ends the trial for all units once withdrawing the policies has cost more than this; absent: no limit. */
  stopIf?: { costUsd: number };
}

/** Withdraws policies from the computes of a control group. */
export interface Trial extends FromPolicy {
  type: 'trial';
  terms: TrialTerms;
  /** The groups of fields that the withdrawn policies may change; empty until the policies are looked up for a compute. */
  groups: readonly FieldGroup[];
}

/** Applies the limits of the budget steps that spending has reached. */
export interface Budget extends FromPolicy {
  type: 'budget';
  terms: BudgetTerms<PartialDisruption>;
}

/** Keeps the floors that a guard has set by undoing lowerings. */
export interface Guard extends FromPolicy {
  type: 'guard';
  remedy: GuardRemedy;
  /** The duration of a floor, in milliseconds; may be infinite. */
  retryMs: number;
}

/** Each new member must be added in compiled-policies.ts and handled by a stage in decide.ts; otherwise those do not compile. */
export type Directive = ProposedValues | Bounds | Need | RestartWindow | FreezeWindow | Trial | Budget | Guard;

export type DirectiveType = Directive['type'];

/** All directives of one instant by type, each list sorted as in compiled-policies.ts. */
export type Directives = { readonly [S in DirectiveType]: readonly Extract<Directive, { type: S }>[] };
