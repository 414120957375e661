import type { FieldGroup } from '../../compute/compute.ts';
import type { TimeSpec } from '../../time/time-spec.ts';
import { mayChangeAfter, mayHaveChangedUntil } from '../../time/windows.ts';
import type { ConnectionNeed, Directive } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import type { ScheduleWindow } from '../schedule-window.ts';

/** The interface of a kind of policy, with one file in this folder for each. Instants are milliseconds since the epoch. */
export interface Rule<P extends PolicyBase> {
  /** The policy's directives at an instant, in any order. */
  directivesAt(policy: P, policyIndex: number, instantMs: number): Directive[];
  /** True if it only ever stops writes: then it also counts where its selection is unknown. */
  stopsWrites: boolean;
  /** The groups of fields that it may give another value, at any instant. */
  mayChange(policy: P): readonly FieldGroup[];
  /** The connections that it must know the number of; undefined where it does without. */
  need(policy: P): ConnectionNeed | undefined;
  /** The name of a protection that must not vanish unnoticed in the middle of an edit; undefined for what may change at once. */
  guard(policy: P): string | undefined;
  /** The part that it decides. `nothing`: it proposes no value, or changes only at instants that are stored, as steps of budgets are. */
  decides: 'values' | 'bounds' | 'restarts' | 'nothing';
  /** Its windows, with the values that each proposes while it is open. */
  windows(policy: P): readonly ScheduleWindow[];
  /** Times at whose start it may restart awake computes, whatever their size is; undefined if it never does. */
  restartsAt(policy: P): readonly TimeSpec[] | undefined;
  /** True if its owner owns the selected computes; else it only protects or restricts for a time. */
  owns: boolean;
  /** Why a trial can't withdraw it; undefined if it can. */
  notWithdrawable(policy: P): string | undefined;
  /** True if holds don't replace its wishes. */
  overridesHolds(policy: P): boolean;
  /** True if it asks how many connections a compute has, besides {@link need} and `disruption`. */
  asksForConnections(policy: P): boolean;
  /** True if it asks for roles of branches, besides its selector. */
  asksForRoles(policy: P): boolean;
  /** Every time that it names. */
  times(policy: P): readonly TimeSpec[];
  /** The next instant strictly after at which {@link directivesAt} may say something else; undefined if never. */
  nextChangeAfter(policy: P, instantMs: number): number | undefined;
  /** The latest instant at or before at which its directives may have changed; −Infinity if they never do. */
  lastChangeUntil(policy: P, instantMs: number): number;
}

/** For kinds of policies that say the same whenever one of their times, `at`, is open, and nothing while none is. */
export const timed = {
  times: ({ at }: { at: readonly TimeSpec[] }) => at,
  nextChangeAfter: ({ at }: { at: readonly TimeSpec[] }, instantMs: number) => mayChangeAfter(at, instantMs),
  lastChangeUntil: ({ at }: { at: readonly TimeSpec[] }, instantMs: number) => mayHaveChangedUntil(at, instantMs),
};

/** For kinds of policies whose directives never change, and that set values. */
export const timeless = {
  stopsWrites: false,
  times: () => [],
  nextChangeAfter: () => undefined,
  lastChangeUntil: () => Number.NEGATIVE_INFINITY,
};

/** For kinds of policies that propose no values for times of their own. */
export const withoutWindows = { windows: () => [], restartsAt: () => undefined };

/** For kinds of policies that ask for no facts beyond their selector. */
export const withoutQuestions = {
  need: () => undefined,
  asksForConnections: () => false,
  asksForRoles: () => false,
};

/** For kinds of policies that protect, restrict or measure: they give no ownership, no trial withdraws them, and holds override them. */
export const withoutOwnership = {
  owns: false,
  notWithdrawable: ({ name, kind }: PolicyBase & { kind: string }) =>
    `"${name}" is of kind ${kind}; a trial withdraws schedules and soft limits only`,
  overridesHolds: () => false,
};
