import type { ComputeIdentity } from '../compute/compute.ts';
import type { StepSpan } from '../spend/terms.ts';
import { prepareDates } from '../time/windows/date-filter.ts';
import type { TrialStop } from '../trial/savings.ts';
import { compareProposals, type Directive, type Directives, type DirectiveType } from './directive.ts';
import { ruleOf } from './kinds/kinds.ts';
import type { Policy, PolicySet } from './policy.ts';
import { AT_ANY_AGE, type ComputeMatcher, compileSelector } from './select.ts';
import { selectsByBranch } from './selector.ts';
import type { ReadyWaves } from './waves.ts';

/** A policy set prepared for frequent use: selectors are compiled, and directives are cached by instant. */
export interface CompiledPolicies {
  readonly set: PolicySet;
  /** Time spans in which budget steps limit computes; see {@link withBudgetSteps}. */
  readonly budgetSteps: readonly StepSpan[];
  /** Trials that were ended early because of their cost. */
  readonly trialStops: readonly TrialStop[];
  /** The waves in which computes are raised; see {@link withReadyWaves}. */
  readonly readyWaves: readonly ReadyWaves[];
  /** True if a policy needs the names or roles of branches. */
  readonly selectsByBranch: boolean;
  /**
   * Indexes of the policies that select the compute, whatever its age. If it is unknown whether a policy selects it, the policy counts as
   * selecting only if its kind stops writes.
   */
  selecting(compute: ComputeIdentity): readonly number[];
  /** True if the policy with this index selects the compute at this instant. */
  selects(policyIndex: number, compute: ComputeIdentity, instantMs: number): boolean;
  /** The directives, at an instant, of all policies that select the compute. */
  effectiveFor(compute: ComputeIdentity, instantMs: number): EffectivePolicies;
  /** The next later instant at which the directives of the policy with this index may change; undefined if never. */
  nextChangeAfter(policyIndex: number, instantMs: number): number | undefined;
  /** The latest instant, up to this one, at which the directives of the policy with this index may have changed. */
  lastChangeUntil(policyIndex: number, instantMs: number): number;
}

/** The policies that select some computes. All computes with the same combination share its cached effective policies. */
interface PolicyCombination {
  policyIndexes: readonly number[];
  /** Indexes of the policies for which it is unknown whether they select these computes. */
  unknownIndexes: readonly number[];
  /** The highest minimum age of these policies: from this age on all of them select. */
  oldestMinAgeMs: number;
  effective: Map<number, EffectivePolicies>;
}

/** Limits of the caches. A reconcile of the fleet often needs the same instants: now, and the next boundaries. */
const MAX_CACHED = 1024;
const MAX_CACHED_PER_COMBINATION = 128;
/** Stretches per policy. Few are enough: computes are evaluated one after the other for the same few instants. */
const MAX_CACHED_STRETCHES = 4;

/** Compiles a policy set. Its caches are bounded. */
export function compilePolicies(set: PolicySet): CompiledPolicies {
  const { policies } = set;
  for (const policy of policies) for (const time of ruleOf(policy).times(policy)) prepareDates(time);
  const combinationOf = combinationsOf(set);
  const stretches = policies.map((policy, index) => cacheStretches(policy, index));
  const minAgeMs = (index: number) => policies[index]?.select.minAgeMs ?? Number.POSITIVE_INFINITY;
  return {
    set,
    budgetSteps: [],
    trialStops: [],
    readyWaves: [],
    selectsByBranch: policies.some(
      (policy) => selectsByBranch(policy.select) || ruleOf(policy).asksForBranches(policy),
    ),
    selecting: (compute) => combinationOf(compute, Number.POSITIVE_INFINITY).policyIndexes,
    selects: (policyIndex, compute, instantMs) =>
      instantMs - compute.createdAtMs >= minAgeMs(policyIndex) &&
      combinationOf(compute, Number.POSITIVE_INFINITY).policyIndexes.includes(policyIndex),
    effectiveFor(compute, instantMs) {
      const { effective, policyIndexes, unknownIndexes } = combinationOf(compute, instantMs - compute.createdAtMs);
      return cached(effective, MAX_CACHED_PER_COMBINATION, instantMs, () => {
        const directives = policyIndexes.flatMap((index) => stretches[index]?.(instantMs).directives ?? []);
        const unknown = unknownIndexes.flatMap((index) => policies[index] ?? []);
        return { ...effectivePolicies(directives), policyIndexes, isMatched: policyIndexes.length > 0, unknown };
      });
    },
    nextChangeAfter: (policyIndex, instantMs) => stretches[policyIndex]?.(instantMs).untilMs,
    lastChangeUntil(policyIndex, instantMs) {
      const policy = policies[policyIndex];
      return policy ? ruleOf(policy).lastChangeUntil(policy, instantMs) : Number.NEGATIVE_INFINITY;
    },
  };
}

/** The same policies with these budget steps, which follow from spending, not from the policies. */
export function withBudgetSteps(policies: CompiledPolicies, budgetSteps: readonly StepSpan[]): CompiledPolicies {
  return { ...policies, budgetSteps };
}

/** The same policies with these waves for `ready: true`, which follow from the fleet and the rate limit, not from the policies. */
export function withReadyWaves(policies: CompiledPolicies, readyWaves: readonly ReadyWaves[]): CompiledPolicies {
  return { ...policies, readyWaves };
}

/** A time span in which a policy's directives do not change. */
interface Stretch {
  fromMs: number;
  /** The exclusive end; undefined: for ever. */
  untilMs: number | undefined;
  directives: readonly Directive[];
}

/** Caches a policy's directives by stretch, since they are the same for all instants in it. */
function cacheStretches(policy: Policy, index: number): (instantMs: number) => Stretch {
  const rule = ruleOf(policy);
  const cache: Stretch[] = [];
  return (instantMs) => {
    const found = cache.find(
      ({ fromMs, untilMs }) => fromMs <= instantMs && (untilMs === undefined || instantMs < untilMs),
    );
    if (found) return found;
    const untilMs = rule.nextChangeAfter(policy, instantMs);
    const stretch = { fromMs: instantMs, untilMs, directives: rule.directivesAt(policy, index, instantMs) };
    cache.unshift(stretch);
    if (cache.length > MAX_CACHED_STRETCHES) cache.pop();
    return stretch;
  };
}

/** Matches each compute object once, since its names do not change; its age, in milliseconds, is compared each time. */
function combinationsOf({ policies }: PolicySet): (compute: ComputeIdentity, ageMs: number) => PolicyCombination {
  const matchers: ComputeMatcher[] = policies.map((policy) => compileSelector(policy.select));
  const everyIndex = [...matchers.keys()];
  const minAges = policies.map(({ select }) => select.minAgeMs);
  const stopsWrites = policies.map((policy) => ruleOf(policy).stopsWrites);
  const combinations = new Map<string, PolicyCombination>();
  const matched = new WeakMap<ComputeIdentity, PolicyCombination>();
  const combinationFor = (policyIndexes: readonly number[], unknownIndexes: readonly number[]): PolicyCombination =>
    cached(combinations, MAX_CACHED, `${policyIndexes.join()} ${unknownIndexes.join()}`, () => ({
      policyIndexes,
      unknownIndexes,
      oldestMinAgeMs: Math.max(0, ...[...policyIndexes, ...unknownIndexes].map((index) => minAges[index] ?? 0)),
      effective: new Map(),
    }));
  const match = (compute: ComputeIdentity): PolicyCombination => {
    const selections = matchers.map((matches) => matches(compute, AT_ANY_AGE));
    const unknownIndexes = everyIndex.filter((index) => selections[index] === 'unknown');
    const selecting = everyIndex.filter(
      (index) => selections[index] === 'yes' || (selections[index] === 'unknown' && stopsWrites[index]),
    );
    const combination = combinationFor(selecting, unknownIndexes);
    matched.set(compute, combination);
    return combination;
  };
  return (compute, ageMs) => {
    const combination = matched.get(compute) ?? match(compute);
    if (ageMs >= combination.oldestMinAgeMs) return combination;
    const isOldEnough = (index: number) => ageMs >= (minAges[index] ?? 0);
    return combinationFor(
      combination.policyIndexes.filter(isOldEnough),
      combination.unknownIndexes.filter(isOldEnough),
    );
  };
}

function cached<K, V extends object>(cache: Map<K, V>, maxEntries: number, key: K, compute: () => V): V {
  const found = cache.get(key);
  if (found !== undefined) return found;
  const value = compute();
  if (cache.size >= maxEntries) cache.clear();
  cache.set(key, value);
  return value;
}

/** The effective directives at an instant, for computes that the same policies select. */
export interface EffectivePolicies {
  all: Directives;
  /** Directives of enforcing policies; the same object as `all` if all policies enforce. */
  enforced: Directives;
  /** True if at least one policy selects the computes. */
  isMatched: boolean;
  /** Indexes of the policies that select the computes. */
  policyIndexes: readonly number[];
  /** Policies for which it is unknown whether they select the computes. */
  unknown: readonly Policy[];
}

/** Groups effective directives by type, for all policies and for enforcing ones. */
function effectivePolicies(directives: readonly Directive[]): Pick<EffectivePolicies, 'all' | 'enforced'> {
  const enforcedOnly = directives.filter(({ policy }) => policy.mode === 'enforce');
  const all = groupByType(directives);
  return { all, enforced: enforcedOnly.length === directives.length ? all : groupByType(enforcedOnly) };
}

function groupByType(directives: readonly Directive[]): Directives {
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
    guard: ofType('guard'),
  };
}

function byImportance(a: Directive, b: Directive): number {
  return b.policy.priority - a.policy.priority || b.policyIndex - a.policyIndex;
}
