/**
 * The control group of a trial. For its units the policies of `of` have no effect, and the fields that these may change are as before the
 * trial. Instants are milliseconds since the epoch.
 */
import { type Compute, FIELD_GROUPS } from '../compute/compute.ts';
import type { CompiledPolicies, EffectivePolicies } from '../policy/compiled-policies.ts';
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

/** A compute and its trial records. */
export interface InTrial {
  compute: Compute;
  instantMs: number;
  /** The stored draws of the compute; they win over what a policy would draw by now. */
  trials?: TrialRecords | undefined;
  /** As if the compute were in this arm of every trial, whatever was drawn. */
  arm?: Arm | undefined;
}

/** The unit of a compute that is drawn and measured. */
export function usageUnitOf({ unit }: Pick<TrialTerms, 'unit'>, { projectId, branchId }: Compute): UsageUnit {
  return { projectId, branchId: unit === 'project' ? null : branchId };
}

/** The unit of a compute: `PROJECT`, or `PROJECT/BRANCH`. */
export function unitOf(terms: Pick<TrialTerms, 'unit'>, compute: Compute): string {
  return unitName(usageUnitOf(terms, compute));
}

/** The effective policies of a compute: in the control group of a trial, without those that are withdrawn. Of several trials the first counts. */
export function effectiveInTrial(policies: CompiledPolicies, about: InTrial): EffectivePolicies {
  const effective = policies.effectiveFor(about.compute, about.instantMs);
  if (effective.all.trial.length === 0) return effective;
  const all = inArmOfTrial(policies, effective.all, effective.policyIndexes, about);
  if (effective.enforced === effective.all) return { ...effective, all, enforced: all };
  return { ...effective, all, enforced: inArmOfTrial(policies, effective.enforced, effective.policyIndexes, about) };
}

/** The same policies are effective for computes of one arm, so these are put together once. */
const known = new WeakMap<Directives, Partial<Record<Arm, Directives>>>();

function inArmOfTrial(
  policies: CompiledPolicies,
  directives: Directives,
  policyIndexes: readonly number[],
  about: InTrial,
): Directives {
  const [trial] = directives.trial;
  if (!trial) return directives;
  const arm = isControl(trial, about) ? 'control' : 'treated';
  const arms = known.get(directives) ?? {};
  known.set(directives, arms);
  arms[arm] ??=
    arm === 'control' ? withdrawn(policies, directives, policyIndexes, trial) : { ...directives, trial: [] };
  return arms[arm];
}

function withdrawn(
  { set }: CompiledPolicies,
  directives: Directives,
  policyIndexes: readonly number[],
  trial: Trial,
): Directives {
  const { of } = trial.terms;
  const selecting = policyIndexes.flatMap((index) => set.policies[index] ?? []).filter(({ name }) => of.includes(name));
  const changed = new Set(selecting.flatMap((policy) => ruleOf(policy).mayChange(policy)));
  const stays = ({ policy }: { policy: { name: string } }) => !of.includes(policy.name);
  return {
    ...directives,
    values: directives.values.filter(stays),
    bounds: directives.bounds.filter(stays),
    trial: [{ ...trial, groups: FIELD_GROUPS.filter((group) => changed.has(group)) }],
  };
}

function isControl({ policy, terms }: Trial, about: InTrial): boolean {
  const draw = drawFor(terms, policy.name, about);
  if (!draw) return false;
  return (about.arm ?? armAt(terms.design, draw, about.instantMs)) === 'control';
}

/** Undefined where the compute is in no arm: its settings before the trial are unknown, or it was assigned under other terms. */
function drawFor(terms: TrialTerms, name: string, { compute, trials }: InTrial): Draw | undefined {
  const stored = trials?.[name];
  if (!stored) return pureDraw(terms, compute);
  return stored.baseline === null || stored.terms !== terms.digest ? undefined : stored;
}

const draws = new WeakMap<TrialTerms, Map<string, Draw>>();

/** The draw that follows from the terms; one for each unit. */
export function pureDraw(terms: TrialTerms, compute: Compute): Draw {
  const ofTerms = draws.get(terms) ?? new Map<string, Draw>();
  draws.set(terms, ofTerms);
  const unit = unitOf(terms, compute);
  const draw = ofTerms.get(unit) ?? drawOf(terms.design, unit);
  ofTerms.set(unit, draw);
  return draw;
}

/** The trial that counts for a compute, and when it flips. */
export interface TrialOfCompute {
  policy: TrialPolicy;
  /** Ascending. */
  flips: readonly number[];
  /** True if it is in the control group in the first period. */
  isControlFirst: boolean;
  /** The end of the period of the compute in which an instant is; undefined outside of the trial. */
  periodEndMs(instantMs: number): number | undefined;
}

function trialsSelecting({ set, selecting }: CompiledPolicies, compute: Compute): TrialPolicy[] {
  return selecting(compute).flatMap((index) => asKind(set.policies[index], 'trial') ?? []);
}

/** The flips of all trials of a compute: one that only observes may count for the wanted settings, and another for the enforced ones. */
export function flipsOfAll(policies: CompiledPolicies, about: Pick<InTrial, 'compute' | 'trials'>): number[] {
  return trialsSelecting(policies, about.compute).flatMap((policy) => {
    const draw = drawFor(policy, policy.name, { ...about, instantMs: 0 });
    return draw ? flipsOf(policy.design, draw) : [];
  });
}

/** Undefined if the compute is in no trial, or left out of it. */
export function trialOf(
  policies: CompiledPolicies,
  about: Pick<InTrial, 'compute' | 'trials'>,
): TrialOfCompute | undefined {
  const trials = trialsSelecting(policies, about.compute);
  // The order of policies: the highest priority, then the later one.
  const policy = trials
    .toSorted((a, b) => b.priority - a.priority)
    .findLast(({ priority }, _, all) => priority === all[0]?.priority);
  const draw = policy && drawFor(policy, policy.name, { ...about, instantMs: 0 });
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
