/**
 * Directives: what policies want at an instant for every compute that they select. A directive carries all that the stages need, so a
 * policy of any kind may give it; of the policy itself they only read what every policy has.
 */

import type { FieldGroup, Size } from '../compute/compute.ts';
import type { BudgetTerms } from '../spend/terms.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import type { TrialDesign } from '../trial/assignment.ts';
import type { PartialDisruption } from './disruption.ts';
import type { PolicyBase } from './policy-base.ts';
import type { OwnWave } from './waves.ts';

/** A value, or "the compute's settings when ebb first saw it". */
export type ProposedValue<T> = T | 'baseline';

/** One policy's proposal at an instant for every compute that it selects. */
export interface ProposedValues {
  type: 'values';
  policy: PolicyBase;
  /** Place of the policy in its set; a later one wins a tie. */
  policyIndex: number;
  /** The source: an open absolute interval, an open recurring window, or the policy's `otherwise`. */
  source: 'absolute' | 'recurring' | 'otherwise';
  /** Place of the window in its policy; −1 for `otherwise`. */
  windowIndex: number;
  /** Times of the window; absent for `otherwise`. */
  at?: readonly TimeSpec[];
  /** When the window opened, milliseconds since the epoch; absent for `otherwise`. */
  openSinceMs?: number;
  /** It opens only at {@link openSinceMs}, and raises are already begun. */
  leads?: true;
  /** It counts from the wave of the compute on; where that is unknown, from this lead before it opens. */
  leadWithoutWavesMs?: number;
  /** The wave of the compute that is decided about, where that is known. */
  wave?: OwnWave;
  size?: ProposedValue<Size>;
  suspendTimeoutSeconds?: ProposedValue<number>;
}

const SOURCE_RANK = { absolute: 1, recurring: 0, otherwise: 0 } as const;

/**
 * The order of the language, first wins: an open window over any `otherwise`, then the highest priority, then an absolute
 * interval over a recurring window, then the later policy, and within a policy the later window.
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

interface FromPolicy {
  policy: PolicyBase;
  /** Place of the policy in its set; a later one wins a tie. */
  policyIndex: number;
}

/** Two bounds of one group as plain numbers: CU, or seconds with "never" as infinity. */
export interface Range {
  low: number;
  high: number;
}

/** Of the groups that are bounded. */
export type Ranges = { readonly [G in FieldGroup]?: Range };

/** Clamps the wishes of earlier stages. */
export interface Bounds extends FromPolicy {
  type: 'bounds';
  ranges: Ranges;
  /** Wins over headroom and manual changes. */
  hard: boolean;
}

/** The headroom of connections. Shares are in (0, 1]. */
export interface ConnectionNeed {
  /** Name of the source of connection counts. */
  connections: string;
  targetShare: number;
  /** From here on a raise does not wait. */
  criticalShare?: number;
  maxCu: number;
  mayRaiseMin: boolean;
  /** A smaller size must have been enough for this long before the raise is undone. */
  scaleDownAfterMs: number;
  act: 'apply' | 'advise';
}

/** Connections must stay free. */
export interface Need extends FromPolicy {
  type: 'need';
  need: ConnectionNeed;
}

/** A restart may be made now. */
export interface RestartWindow extends FromPolicy {
  type: 'restart';
  /** Milliseconds since the epoch. */
  openSinceMs: number;
  /** Not again before this has passed since the last start. */
  everyMs?: number;
  /** Only while fewer connections than this are open. */
  connectionsBelow?: number;
}

/** Nothing may be written now, except raises where they are allowed. */
export interface FreezeWindow extends FromPolicy {
  type: 'freeze';
  allowRaise: boolean;
  /** Its end, milliseconds since the epoch; absent if it has none. */
  untilMs?: number;
}

/** The policies that a trial withdraws, and from which computes. */
export interface TrialTerms {
  /** Names of the policies that have no effect in the control group. */
  of: readonly string[];
  /** The drawn unit: a whole project, or a branch. */
  unit: 'project' | 'branch';
  design: TrialDesign;
  /** Of all that must not change while the trial runs: seed, control, unit, rotate, from, zone and of. */
  digest: string;
  /** The trial ends for all units once withdrawing the policies has cost more than this; absent: no limit. */
  stopIf?: { costUsd: number };
}

/** Policies have no effect in a control group. */
export interface Trial extends FromPolicy {
  type: 'trial';
  terms: TrialTerms;
  /** The groups that withdrawn policies may change; empty until the affected computes are known. */
  groups: readonly FieldGroup[];
}

/** Steps of a budget may limit: those that the spending has reached. */
export interface Budget extends FromPolicy {
  type: 'budget';
  terms: BudgetTerms<PartialDisruption>;
}

/** A new member needs a place in the order of compiled-policies.ts and a stage in decide.ts; without them, these do not compile. */
export type Directive = ProposedValues | Bounds | Need | RestartWindow | FreezeWindow | Trial | Budget;

export type DirectiveType = Directive['type'];

/** All directives of one instant by type, each list in the order of {@link ./compiled-policies.ts}. */
export type Directives = { readonly [S in DirectiveType]: readonly Extract<Directive, { type: S }>[] };
