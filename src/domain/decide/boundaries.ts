import {
  type Compute,
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  sameSize,
  valueOfGroup,
} from '../compute/compute.ts';
import type { CompiledPolicies, EffectivePolicies } from '../policy/compiled-policies.ts';
import { compareProposals, type Directives, type ProposedValues, type RestartWindow } from '../policy/directive.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy } from '../policy/policy.ts';
import { waveOf } from '../policy/waves.ts';
import { ascending, lowerBound } from '../sorted.ts';
import { DAY_MS } from '../time/units.ts';
import { effectiveInTrial, flipsOfAll } from './control-group.ts';
import { type DecideInput, type Decision, decide } from './decide.ts';
import { MAX_STEPS, MAX_STEPS_BACK, MAX_STEPS_OF_DECISION, stepsToDecide } from './search-cost.ts';
import { stepInstants } from './stages/budget.ts';
import { floorInstants } from './stages/floors.ts';

/** How far ahead boundaries are searched, in milliseconds. Those beyond are found as time passes. */
const BOUNDARY_HORIZON_MS = 2 * 366 * DAY_MS;

/** How far back boundaries are searched: longer than any deadline. Earlier ones make no difference. */
const BACKWARD_HORIZON_MS = 35 * DAY_MS;

/** The input for boundaries. They don't depend on connections, whose future counts are unknown, nor on restores. */
export type BoundaryInput = Omit<DecideInput, 'instantMs' | 'restore' | 'connections' | 'profile'>;

/** Milliseconds since the epoch. */
interface BoundarySearch {
  /** Undefined if none was found. */
  boundaryMs: number | undefined;
  /** The end of an incomplete search: no desired value changes before it. Absent if the search was complete. */
  searchedUntilMs?: number;
}

/**
 * Searches the next instant after `afterMs` at which a desired field (of one group, if given) changes or a restart becomes possible,
 * within {@link BOUNDARY_HORIZON_MS}. The search goes from one change of a relevant policy to the next. It ends after {@link MAX_STEPS};
 * the first change may take {@link MAX_STEPS_OF_DECISION}.
 */
export function searchBoundary(input: BoundaryInput, afterMs: number, group?: FieldGroup): BoundarySearch {
  const before = decisionAt(input, afterMs);
  const otherInstants = otherChangeInstants(input);
  let from = before;
  for (let spent = 0; ; ) {
    const instantMs = nextChange(input, otherInstants, from.instantMs, group);
    if (instantMs === undefined || instantMs - afterMs > BOUNDARY_HORIZON_MS) return { boundaryMs: undefined };
    const steps = stepsFrom(input, from.instantMs, instantMs);
    if (spent + steps > (spent === 0 ? MAX_STEPS_OF_DECISION : MAX_STEPS))
      return { boundaryMs: undefined, searchedUntilMs: instantMs };
    spent += steps;
    from = decisionAt(input, instantMs);
    if (!sameDesired(before, from, group)) return { boundaryMs: instantMs };
  }
}

/** The boundary of {@link searchBoundary}. */
export function nextBoundary(input: BoundaryInput, afterMs: number, group?: FieldGroup): number | undefined {
  return searchBoundary(input, afterMs, group).boundaryMs;
}

/** When to repeat an incomplete search: halfway to its end, so that a boundary just after the end is found in time. */
export function searchAgainAt(
  searchedFromMs: number,
  { searchedUntilMs }: { searchedUntilMs?: number },
): number | undefined {
  return searchedUntilMs === undefined ? undefined : (searchedFromMs + searchedUntilMs) / 2;
}

/**
 * The latest instant up to `untilMs` at which a group's desired value changed; −Infinity if that is further back than any deadline,
 * undefined if the search reached its cost limit first.
 */
export function lastBoundary(input: BoundaryInput, untilMs: number, group: FieldGroup): number | undefined {
  const now = decisionAt(input, untilMs);
  const otherInstants = otherChangeInstants(input);
  let from = now;
  for (let spent = 0; ; ) {
    const steps = stepsFrom(input, from.instantMs);
    if (spent + steps > MAX_STEPS_BACK) return undefined;
    const instantMs = lastChange(input, otherInstants, from.instantMs, group);
    if (untilMs - instantMs > BACKWARD_HORIZON_MS) return Number.NEGATIVE_INFINITY;
    spent += steps;
    from = decisionAt(input, instantMs - 1);
    if (!sameDesired(now, from, group)) return instantMs;
  }
}

/** The cost of one more decision. With `instantMs`, only policies that change until then are evaluated again. */
function stepsFrom({ policies, compute }: BoundaryInput, fromMs: number, instantMs?: number): number {
  return stepsToDecide(policies, policies.selecting(compute), (index) => {
    const changesMs = policies.nextChangeAfter(index, fromMs);
    return instantMs === undefined || (changesMs !== undefined && changesMs <= instantMs);
  });
}

/** True if the compute's desired settings change, or a restart becomes possible, exactly at this instant. */
export function isBoundary(input: BoundaryInput, instantMs: number): boolean {
  return !sameDesired(decisionAt(input, instantMs - 1), decisionAt(input, instantMs));
}

function decisionAt(input: BoundaryInput, instantMs: number): Decision {
  const { policies, compute, baseline, trials, floors, arm, holds } = input;
  return decide({ policies, compute, baseline, trials, floors, arm, holds, instantMs });
}

function nextChange(
  input: BoundaryInput,
  otherInstants: readonly number[],
  afterMs: number,
  group?: FieldGroup,
): number | undefined {
  const position = lowerBound(otherInstants, afterMs);
  let next = otherInstants[otherInstants[position] === afterMs ? position + 1 : position];
  for (const index of decidingIndexes(input, afterMs, group)) {
    const change = input.policies.nextChangeAfter(index, afterMs);
    if (change !== undefined && change < (next ?? Number.POSITIVE_INFINITY)) next = change;
  }
  return next;
}

function lastChange(
  input: BoundaryInput,
  otherInstants: readonly number[],
  untilMs: number,
  group: FieldGroup,
): number {
  const position = lowerBound(otherInstants, untilMs);
  let last = otherInstants[otherInstants[position] === untilMs ? position : position - 1] ?? Number.NEGATIVE_INFINITY;
  for (const index of decidingIndexes(input, untilMs, group)) {
    last = Math.max(last, input.policies.lastChangeUntil(index, untilMs));
  }
  return last;
}

/** The indexes of the policies that may change the desired values. */
function decidingIndexes(input: BoundaryInput, instantMs: number, group: FieldGroup | undefined) {
  const { policies, compute, baseline } = input;
  const effective = effectiveInTrial(policies, { ...input, instantMs });
  const mayDecide = mayDecideTest(effective, baseline, group === undefined);
  return policies.selecting(compute).filter((index) => {
    const policy = policies.set.policies[index];
    return policy !== undefined && mayDecide(policy, index);
  });
}

/** Instants other than changes of policies at which a decision may change, ascending and unique. Computed once per search. */
function otherChangeInstants(input: BoundaryInput): number[] {
  const { policies, compute, holds = [] } = input;
  const holdsOfCompute = holds.filter(({ computeId }) => computeId === compute.computeId);
  // A policy begins to select the compute when it reaches the minimum age.
  const ages = policies.selecting(compute).map((index) => policies.set.policies[index]?.select.minAgeMs ?? 0);
  const flips = input.arm === undefined ? flipsOfAll(policies, input) : [];
  const holdInstants = holdsOfCompute.flatMap(({ createdAtMs, expiresAtMs }) => [createdAtMs, expiresAtMs]);
  const steps = [...stepInstants(policies, compute), ...floorInstants(policies, input.floors)];
  const minAgeInstants = ages.map((ageMs) => compute.createdAtMs + ageMs);
  return [...new Set([...flips, ...holdInstants, ...steps, ...waveStarts(policies, compute), ...minAgeInstants])].sort(
    ascending,
  );
}

/** The starts of the compute's waves for windows with `ready: true`. */
export function waveStarts({ readyWaves, set, selecting }: CompiledPolicies, compute: Compute): number[] {
  if (readyWaves.length === 0) return [];
  const isReady = (policy: Policy) =>
    ruleOf(policy)
      .windows(policy)
      .some(({ readyInWaves }) => readyInWaves);
  const policies = selecting(compute).flatMap((index) => set.policies[index] ?? []);
  const priorities = new Set(policies.filter(isReady).map(({ priority }) => priority));
  return [...priorities].flatMap((priority) =>
    readyWaves.flatMap(({ opensAtMs }) => {
      const wave = waveOf(readyWaves, { compute, priority, opensAtMs });
      return wave ? [opensAtMs - wave.leadMs] : [];
    }),
  );
}

function sameDesired(a: Decision, b: Decision, group?: FieldGroup): boolean {
  if (group !== undefined) return sameGroup(a, b, group);
  const isSameRestart =
    a.restart?.policyIndex === b.restart?.policyIndex && a.restart?.openSinceMs === b.restart?.openSinceMs;
  return FIELD_GROUPS.every((each) => sameGroup(a, b, each)) && isSameRestart;
}

function sameGroup(a: Decision, b: Decision, group: FieldGroup): boolean {
  return (['desired', 'enforced'] as const).every((which) =>
    group === 'size'
      ? sameSize(a[which].size, b[which].size)
      : a[which].suspendTimeoutSeconds === b[which].suspendTimeoutSeconds,
  );
}

/**
 * Returns a test whether a change of a policy may change the desired values, as long as the policies that decide now stay the same. Policies
 * that are always outranked do not pass; restart windows pass only with `includesRestarts`.
 */
function mayDecideTest(
  effective: EffectivePolicies,
  baseline: ComputeSettings | undefined,
  includesRestarts: boolean,
): (policy: Policy, policyIndex: number) => boolean {
  // Computed once for all policies, since there may be thousands of proposals before the first with a value.
  const winnersOf = (directives: Directives) => FIELD_GROUPS.map((group) => winnerOf(directives, group, baseline));
  const all = winnersOf(effective.all);
  const enforced = effective.enforced === effective.all ? all : winnersOf(effective.enforced);
  const restartWinner = effective.enforced.restart[0] ?? effective.all.restart[0];
  return (policy, policyIndex) => {
    // Freezes only stop writes; flips of trials and steps of budgets are among the other instants.
    const rule = ruleOf(policy);
    if (rule.decides === 'nothing') return false;
    if (rule.decides === 'restarts') return includesRestarts && !isOutranked(policy, policyIndex, restartWinner);
    if (rule.decides === 'bounds') return true;
    const windows = rule.windows(policy);
    const winnerSets = policy.mode === 'enforce' ? [all, enforced] : [all];
    // Always both groups, since a timeout depends on the size: large computes never suspend.
    return FIELD_GROUPS.some(
      (group, groupIndex) =>
        // Only windows matter: `otherwise` proposes the same values at all times.
        windows.some((window) => valueOfGroup(group, window) !== undefined) &&
        winnerSets.some((winners) => mayWin(policy, policyIndex, winners[groupIndex])),
    );
  };
}

/** The proposal that decides a group; undefined if there is none. */
function winnerOf({ values }: Directives, group: FieldGroup, baseline: ComputeSettings | undefined) {
  return values.find((proposal) => {
    const wanted = valueOfGroup(group, proposal);
    return !proposal.startsEarly && wanted !== undefined && (wanted !== 'baseline' || baseline !== undefined);
  });
}

function mayWin(policy: Policy, policyIndex: number, winner: ProposedValues | undefined): boolean {
  if (!winner) return true;
  const windows = ruleOf(policy).windows(policy);
  // Windows with a lead may raise sizes before they open, unless a higher priority decides.
  const hasLead = windows.some(({ readyLeadMs }) => readyLeadMs !== undefined);
  if (hasLead && winner.policy.priority <= policy.priority) return true;
  const isAbsolute = windows.some(({ at }) => at.some(({ kind }) => kind === 'interval'));
  const source = isAbsolute ? 'absolute' : 'recurring';
  const strongest = { type: 'values', policy, policyIndex, windowIndex: Number.POSITIVE_INFINITY, source } as const;
  return compareProposals(winner, strongest) > 0;
}

function isOutranked(policy: Policy, policyIndex: number, winner: RestartWindow | undefined): boolean {
  if (!winner || winner.policyIndex === policyIndex) return false;
  if (winner.policy.mode !== policy.mode) return winner.policy.mode === 'enforce';
  const priorityDifference = winner.policy.priority - policy.priority;
  return priorityDifference > 0 || (priorityDifference === 0 && winner.policyIndex > policyIndex);
}
