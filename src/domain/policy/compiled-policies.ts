import type { ComputeIdentity } from '../compute/compute.ts';
import type { StepSpan } from '../spend/terms.ts';
import { prepareDates } from '../time/windows/date-filter.ts';
import type { TrialStop } from '../trial/savings.ts';
import { compareProposals, type Directive, type Directives, type DirectiveType } from './directive.ts';
import { ruleOf } from './kinds/kinds.ts';
import type { Policy, PolicySet } from './policy.ts';
import { type ComputeMatcher, compileSelector } from './select.ts';
import type { ReadyWaves } from './waves.ts';

/** A policy set compiled for frequent questions: selectors compiled, each policy's directives at an instant cached. */
export interface CompiledPolicies {
  readonly set: PolicySet;
  /** When steps of budgets limit, as far as that is known; see {@link withBudgetSteps}. */
  readonly budgetSteps: readonly StepSpan[];
  /** Trials that were ended early, as far as that is known: that depends on their cost, not on a policy. */
  readonly trialStops: readonly TrialStop[];
  /** The ready waves of computes, as far as that is known; see {@link withReadyWaves}. */
  readonly readyWaves: readonly ReadyWaves[];
  /** True if a policy selects by branch: then the names and roles of branches must be known. */
  readonly selectsByBranch: boolean;
  /**
   * Places of the policies that select the compute, however young it is. Where that is not known a policy counts as selecting if
   * its kind stops writes, and otherwise as not.
   */
  selecting(compute: ComputeIdentity): readonly number[];
  /** True if the policy at this place of the set selects the compute at this instant. */
  selects(policyIndex: number, compute: ComputeIdentity, instantMs: number): boolean;
  /** The directives, at an instant, of the policies that select the compute. */
  effectiveFor(compute: ComputeIdentity, instantMs: number): EffectivePolicies;
  /** The next instant strictly after at which the policy at this place may say something else. */
  nextChangeAfter(policyIndex: number, instantMs: number): number | undefined;
  /** The latest instant at or before at which the directives of the policy at this index may have changed. */
  lastChangeUntil(policyIndex: number, instantMs: number): number;
}

/** Computes that the same policies select. The same policies are effective for them, so these are put together once. */
interface Audience {
  policyIndexes: readonly number[];
  /** Indexes of the policies whose selection is unknown. */
  unknownIndexes: readonly number[];
  /** From this age on all of the policies select them. */
  oldestMinAgeMs: number;
  effective: Map<number, EffectivePolicies>;
}

/** Cached answers: a reconcile of the fleet asks about now and about its next boundaries, again and again. */
const MOST_KEPT = 1024;
const MOST_KEPT_BY_AUDIENCE = 128;
/** Of each policy: computes are asked about the same few instants, one after the other. */
const MOST_STRETCHES_KEPT = 4;

/** Compiles a set once; the same set gives the same answers for ever. The cache is bounded. */
export function compilePolicies(set: PolicySet): CompiledPolicies {
  const { policies } = set;
  for (const policy of policies) for (const time of ruleOf(policy).times(policy)) prepareDates(time);
  const audienceOf = audiencesOf(set);
  const stretches = policies.map((policy, index) => rememberStretches(policy, index));
  const minAgeMs = (index: number) => policies[index]?.select.minAgeMs ?? Number.POSITIVE_INFINITY;
  return {
    set,
    budgetSteps: [],
    trialStops: [],
    readyWaves: [],
    selectsByBranch: policies.some(
      (policy) =>
        (policy.select.branches ?? policy.select.branchRoles) !== undefined || ruleOf(policy).asksForRoles(policy),
    ),
    selecting: (compute) => audienceOf(compute, Number.POSITIVE_INFINITY).policyIndexes,
    selects: (policyIndex, compute, instantMs) =>
      instantMs - compute.createdAtMs >= minAgeMs(policyIndex) &&
      audienceOf(compute, Number.POSITIVE_INFINITY).policyIndexes.includes(policyIndex),
    effectiveFor(compute, instantMs) {
      const { effective, policyIndexes, unknownIndexes } = audienceOf(compute, instantMs - compute.createdAtMs);
      return remember(effective, MOST_KEPT_BY_AUDIENCE, instantMs, () => {
        const ofType = policyIndexes.flatMap((index) => stretches[index]?.(instantMs).directives ?? []);
        const unknown = unknownIndexes.flatMap((index) => policies[index] ?? []);
        return { ...effectivePolicies(ofType, policyIndexes), unknown };
      });
    },
    nextChangeAfter: (policyIndex, instantMs) => stretches[policyIndex]?.(instantMs).untilMs,
    lastChangeUntil(policyIndex, instantMs) {
      const policy = policies[policyIndex];
      return policy ? ruleOf(policy).lastChangeUntil(policy, instantMs) : Number.NEGATIVE_INFINITY;
    },
  };
}

/** The same policies with other budget steps, which depend on the spending and not on a policy. */
export function withBudgetSteps(policies: CompiledPolicies, budgetSteps: readonly StepSpan[]): CompiledPolicies {
  return { ...policies, budgetSteps };
}

/** The same policies with other waves for `ready: true`, which depend on the herd and the rate limit and not on a policy. */
export function withReadyWaves(policies: CompiledPolicies, readyWaves: readonly ReadyWaves[]): CompiledPolicies {
  return { ...policies, readyWaves };
}

/** A policy's directives from one change of them to the next. */
interface Stretch {
  fromMs: number;
  /** Up to but not including; undefined: for ever. */
  untilMs: number | undefined;
  directives: readonly Directive[];
}

/** A policy's directives are the same between two changes, so they are computed once for all instants between them. */
function rememberStretches(policy: Policy, index: number): (instantMs: number) => Stretch {
  const rule = ruleOf(policy);
  const kept: Stretch[] = [];
  return (instantMs) => {
    const known = kept.find(
      ({ fromMs, untilMs }) => fromMs <= instantMs && (untilMs === undefined || instantMs < untilMs),
    );
    if (known) return known;
    const untilMs = rule.nextChangeAfter(policy, instantMs);
    const stretch = { fromMs: instantMs, untilMs, directives: rule.directivesAt(policy, index, instantMs) };
    kept.unshift(stretch);
    if (kept.length > MOST_STRETCHES_KEPT) kept.pop();
    return stretch;
  };
}

/** Names don't change with time, so a compute is matched once; only its age, in milliseconds, is asked again. */
function audiencesOf({ policies }: PolicySet): (compute: ComputeIdentity, ageMs: number) => Audience {
  const matchers: ComputeMatcher[] = policies.map((policy) => compileSelector(policy.select));
  const everyIndex = [...matchers.keys()];
  const minAges = policies.map(({ select }) => select.minAgeMs);
  const stops = policies.map((policy) => ruleOf(policy).stopsWrites);
  const audiences = new Map<string, Audience>();
  const matched = new WeakMap<ComputeIdentity, Audience>();
  const audienceFor = (policyIndexes: readonly number[], unknownIndexes: readonly number[]): Audience =>
    remember(audiences, MOST_KEPT, `${policyIndexes.join()} ${unknownIndexes.join()}`, () => ({
      policyIndexes,
      unknownIndexes,
      oldestMinAgeMs: Math.max(0, ...[...policyIndexes, ...unknownIndexes].map((index) => minAges[index] ?? 0)),
      effective: new Map(),
    }));
  const match = (compute: ComputeIdentity): Audience => {
    const selections = matchers.map((matches) => matches(compute, Number.POSITIVE_INFINITY));
    const unknownIndexes = everyIndex.filter((index) => selections[index] === 'unknown');
    const selecting = everyIndex.filter(
      (index) => selections[index] === 'yes' || (selections[index] === 'unknown' && stops[index]),
    );
    const audience = audienceFor(selecting, unknownIndexes);
    matched.set(compute, audience);
    return audience;
  };
  return (compute, ageMs) => {
    const audience = matched.get(compute) ?? match(compute);
    if (ageMs >= audience.oldestMinAgeMs) return audience;
    const isOldEnough = (index: number) => ageMs >= (minAges[index] ?? 0);
    return audienceFor(audience.policyIndexes.filter(isOldEnough), audience.unknownIndexes.filter(isOldEnough));
  };
}

function remember<K, V>(kept: Map<K, V>, most: number, key: K, compute: () => V): V {
  const known = kept.get(key);
  if (known !== undefined || kept.has(key)) return known as V;
  const value = compute();
  if (kept.size >= most) kept.clear();
  kept.set(key, value);
  return value;
}

/** The effective policies, at an instant, of computes that the same policies select. */
export interface EffectivePolicies {
  all: Directives;
  /** Of the policies that may write; the same object as `all` where none only observes. */
  enforced: Directives;
  /** False if no policy selects them. */
  matched: boolean;
  /** Places of the policies that select them. */
  policyIndexes: readonly number[];
  /** Policies whose selection is unknown. */
  unknown: readonly Policy[];
}

/** The directives of the policies at these places, of all that are effective. */
export function effectivePolicies(
  effective: readonly Directive[],
  policyIndexes: readonly number[],
): Omit<EffectivePolicies, 'unknown'> {
  const enforcedOnly = effective.filter(({ policy }) => policy.mode === 'enforce');
  const all = sortOut(effective);
  const enforced = enforcedOnly.length === effective.length ? all : sortOut(enforcedOnly);
  return { all, enforced, policyIndexes, matched: policyIndexes.length > 0 };
}

function sortOut(directives: readonly Directive[]): Directives {
  const ofType = <S extends DirectiveType>(type: S) =>
    directives.filter((directive): directive is Extract<Directive, { type: S }> => directive.type === type);
  return {
    values: ofType('values').sort(compareProposals),
    bounds: ofType('bounds'),
    need: ofType('need').sort(byImportance),
    restart: ofType('restart').sort(byImportance),
    freeze: ofType('freeze'),
    trial: ofType('trial').sort(byImportance),
    budget: ofType('budget'),
  };
}

function byImportance(a: Directive, b: Directive): number {
  return b.policy.priority - a.policy.priority || b.policyIndex - a.policyIndex;
}
