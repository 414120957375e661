import type { FieldGroup } from '../../compute/compute.ts';
import type { TimeSpec } from '../../time/time-spec.ts';
import { mayChangeAfter, mayHaveChangedUntil } from '../../time/windows.ts';
import type { ConnectionNeed, Directive } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import type { ScheduleWindow } from '../schedule-window.ts';

/** The behaviour of a policy kind; each kind has a file in this folder. Instants are milliseconds since the epoch. */
export interface Rule<P extends PolicyBase> {
  /** The policy's directives at an instant, in any order. */
  directivesAt(policy: P, policyIndex: number, instantMs: number): Directive[];
  /** True if the kind only stops writes: it then also applies where its selection is unknown. */
  stopsWrites: boolean;
  /** The groups of fields that the policy may change at some instant. */
  mayChange(policy: P): readonly FieldGroup[];
  /** The policy's need for connections; undefined if it has none. */
  need(policy: P): ConnectionNeed | undefined;
  /** The noun for a protection, whose removal or change in an edit is reported; undefined for other policies. */
  protectionNoun(policy: P): string | undefined;
  /** What the kind decides. `nothing`: it proposes no values, or changes only at stored instants, as budgets do. */
  decides: 'values' | 'bounds' | 'restarts' | 'nothing';
  /** The policy's windows, with the values that each proposes while it is open. */
  windows(policy: P): readonly ScheduleWindow[];
  /** Times at whose start the policy may restart awake computes of any size; undefined if it never does. */
  restartsAt(policy: P): readonly TimeSpec[] | undefined;
  /** True if the policy's owner owns the selected computes. */
  owns: boolean;
  /** Why a trial can't withdraw the policy; undefined if it can. */
  notWithdrawable(policy: P): string | undefined;
  /** True if the policy takes precedence over holds. */
  overridesHolds(policy: P): boolean;
  /** True if the policy needs the number of connections for other purposes than {@link need} and `disruption`. */
  asksForConnections(policy: P): boolean;
  /** True if the policy needs the names or roles of branches for other purposes than its selector. */
  asksForBranches(policy: P): boolean;
  /** All times on which the policy's directives depend. */
  times(policy: P): readonly TimeSpec[];
  /** The next later instant at which {@link directivesAt} may change; undefined if never. */
  nextChangeAfter(policy: P, instantMs: number): number | undefined;
  /** The latest instant, up to this one, at which {@link directivesAt} may have changed; −Infinity if it never does. */
  lastChangeUntil(policy: P, instantMs: number): number;
}

/** For kinds with directives only while one of their times, `at`, is open. */
export const timed = {
  times: ({ at }: { at: readonly TimeSpec[] }) => at,
  nextChangeAfter: ({ at }: { at: readonly TimeSpec[] }, instantMs: number) => mayChangeAfter(at, instantMs),
  lastChangeUntil: ({ at }: { at: readonly TimeSpec[] }, instantMs: number) => mayHaveChangedUntil(at, instantMs),
};

/** For kinds whose directives never change. */
export const timeless = {
  stopsWrites: false,
  times: () => [],
  nextChangeAfter: () => undefined,
  lastChangeUntil: () => Number.NEGATIVE_INFINITY,
};

/** For kinds without windows of values. */
export const withoutWindows = { windows: () => [], restartsAt: () => undefined };

/** For kinds that need no facts beyond their selector. */
export const withoutQuestions = {
  need: () => undefined,
  asksForConnections: () => false,
  asksForBranches: () => false,
};

/** For kinds that protect, restrict or measure: they propose no values and imply no ownership, and no trial withdraws them. */
export const supporting = {
  ...withoutWindows,
  ...withoutQuestions,
  owns: false,
  notWithdrawable: ({ name, kind }: PolicyBase) =>
    `"${name}" is of kind ${kind}; a trial withdraws schedules and soft limits only`,
  overridesHolds: () => false,
};
