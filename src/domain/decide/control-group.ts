/**
 * The control group of a trial. In it the policies named by `of` have no effect, and the fields that they may change are as before the
 * trial. Instants are milliseconds since the epoch.
 */

import { type Compute, FIELD_GROUPS } from '../compute/compute.ts';
import { getOrAdd } from '../grouping.ts';
import { type CompiledPolicies, compilePolicies, type EffectivePolicies } from '../policy/compiled-policies.ts';
import type { Directives, Trial, TrialTerms } from '../policy/directive.ts';
import { asKind, ruleOf } from '../policy/kinds/kinds.ts';
import type { TrialPolicy } from '../policy/kinds/trial.ts';
import type { TrialRecords } from '../records/compute-record.ts';
import {
  type Arm,
  armAt,
  armInPeriod,
  type Draw,
  drawOf,
  flipsOf,
  periodAt,
  periodStartMs,
} from '../trial/assignment.ts';
import { type UsageUnit, unitName } from '../usage/usage.ts';

/** A compute with its trial records, at an instant. */
interface TrialSubject {
  compute: Compute;
  instantMs: number;
  /** The stored draws; they take precedence over new draws by the policies. */
  trials?: TrialRecords | undefined;
  /** Decides as if the compute were in this arm of every trial. */
  arm?: Arm | undefined;
}

/** The unit of a compute in a trial: its project or branch, which is assigned and measured as a whole. */
export function usageUnitOf({ unit }: Pick<TrialTerms, 'unit'>, { projectId, branchId }: Compute): UsageUnit {
  return { projectId, branchId: unit === 'project' ? null : branchId };
}

/** The name of a compute's unit: `PROJECT` or `PROJECT/BRANCH`. */
export function unitOf(terms: Pick<TrialTerms, 'unit'>, compute: Compute): string {
  return unitName(usageUnitOf(terms, compute));
}

/** The policies without trials and reached budget steps. Both are temporary, so estimates of savings from past use leave them out. */
export function lastingPolicies({ set }: CompiledPolicies): CompiledPolicies {
  return compilePolicies({ ...set, policies: set.policies.filter((policy) => !asKind(policy, 'trial')) });
}

/** The effective policies of a compute, without those that its first trial withdraws if it is in the control group. */
export function effectiveInTrial(policies: CompiledPolicies, subject: TrialSubject): EffectivePolicies {
  const effective = policies.effectiveFor(subject.compute, subject.instantMs);
  if (effective.all.trial.length === 0) return effective;
  const all = inArmOfTrial(policies, effective.all, effective.policyIndexes, subject);
  if (effective.enforced === effective.all) return { ...effective, all, enforced: all };
  return { ...effective, all, enforced: inArmOfTrial(policies, effective.enforced, effective.policyIndexes, subject) };
}

/** Cached directives by arm: all computes of an arm share them. */
const directivesByArm = new WeakMap<Directives, Partial<Record<Arm, Directives>>>();

function inArmOfTrial(
  policies: CompiledPolicies,
  directives: Directives,
  policyIndexes: readonly number[],
  subject: TrialSubject,
): Directives {
  const [trial] = directives.trial;
  if (!trial) return directives;
  const arm = isControl(trial, subject) ? 'control' : 'treated';
  const arms = getOrAdd(directivesByArm, directives, (): Partial<Record<Arm, Directives>> => ({}));
  arms[arm] ??=
    arm === 'control' ? withoutWithdrawn(policies, directives, policyIndexes, trial) : { ...directives, trial: [] };
  return arms[arm];
}

function withoutWithdrawn(
  { set }: CompiledPolicies,
  directives: Directives,
  policyIndexes: readonly number[],
  trial: Trial,
): Directives {
  const { of } = trial.terms;
  const withdrawnPolicies = policyIndexes
    .flatMap((index) => set.policies[index] ?? [])
    .filter(({ name }) => of.includes(name));
  const changed = new Set(withdrawnPolicies.flatMap((policy) => ruleOf(policy).mayChange(policy)));
  const isKept = ({ policy }: { policy: { name: string } }) => !of.includes(policy.name);
  return {
    ...directives,
    values: directives.values.filter(isKept),
    bounds: directives.bounds.filter(isKept),
    trial: [{ ...trial, groups: FIELD_GROUPS.filter((group) => changed.has(group)) }],
  };
}

function isControl({ policy, terms }: Trial, subject: TrialSubject): boolean {
  const draw = drawFor(terms, policy.name, subject);
  if (!draw) return false;
  return (subject.arm ?? armAt(terms.design, draw, subject.instantMs)) === 'control';
}

/** The compute's draw; undefined if its settings before the trial are unknown, or it was assigned under other terms. */
function drawFor(terms: TrialTerms, name: string, { compute, trials }: TrialSubject): Draw | undefined {
  const stored = trials?.[name];
  if (!stored) return pureDraw(terms, compute);
  return stored.baseline === null || stored.terms !== terms.digest ? undefined : stored;
}

const drawsByTerms = new WeakMap<TrialTerms, Map<string, Draw>>();

/** The draw that follows from the terms alone, cached by unit. */
export function pureDraw(terms: TrialTerms, compute: Compute): Draw {
  const drawsOfTerms = getOrAdd(drawsByTerms, terms, () => new Map<string, Draw>());
  const unit = unitOf(terms, compute);
  return getOrAdd(drawsOfTerms, unit, () => drawOf(terms.design, unit));
}

/** The trial of a compute. Instants are milliseconds since the epoch. */
interface TrialOfCompute {
  policy: TrialPolicy;
  /** The instants at which the compute enters or leaves the control group, ascending. */
  flips: readonly number[];
  /** True if the compute is in the control group in the first period. */
  isControlFirst: boolean;
  /** The end of the compute's period at an instant; undefined outside of the trial. */
  periodEndMs(instantMs: number): number | undefined;
}

function trialsSelecting({ set, selecting }: CompiledPolicies, compute: Compute): TrialPolicy[] {
  return selecting(compute).flatMap((index) => asKind(set.policies[index], 'trial') ?? []);
}

/** The flips of all trials of a compute: an observing trial may affect the desired settings, and another one the enforced settings. */
export function flipsOfAll(policies: CompiledPolicies, subject: Pick<TrialSubject, 'compute' | 'trials'>): number[] {
  return trialsSelecting(policies, subject.compute).flatMap((policy) => {
    const draw = drawFor(policy, policy.name, { ...subject, instantMs: 0 });
    return draw ? flipsOf(policy.design, draw) : [];
  });
}

/** The trial of a compute; undefined if it is in no arm of a trial. */
export function trialOf(
  policies: CompiledPolicies,
  subject: Pick<TrialSubject, 'compute' | 'trials'>,
): TrialOfCompute | undefined {
  const trials = trialsSelecting(policies, subject.compute);
  // The highest priority wins, then the later policy.
  const policy = trials
    .toSorted((a, b) => b.priority - a.priority)
    .findLast(({ priority }, _, all) => priority === all[0]?.priority);
  const draw = policy && drawFor(policy, policy.name, { ...subject, instantMs: 0 });
  if (!draw) return undefined;
  return {
    policy,
    flips: flipsOf(policy.design, draw),
    isControlFirst: armInPeriod(policy.design, draw.slot, 0) === 'control',
    periodEndMs(instantMs) {
      const period = periodAt(policy.design, draw, instantMs);
      if (period === undefined) return undefined;
      const { flipDelayMs, stoppedAtMs = Number.POSITIVE_INFINITY } = draw;
      return Math.min(periodStartMs(policy.design, period + 1), stoppedAtMs) + flipDelayMs;
    },
  };
}
