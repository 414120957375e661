import { type Compute, type ComputeSettings, FIELD_GROUPS, type FieldGroup, sameSize } from '../compute/compute.ts';
import type { Hold } from '../overrides/holds.ts';
import type { CompiledPolicies, EffectivePolicies } from '../policy/compiled-policies.ts';
import { compareProposals, type Directives, type ProposedValues, type RestartWindow } from '../policy/directive.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy } from '../policy/policy.ts';
import { waveOf } from '../policy/waves.ts';
import type { TrialRecords } from '../records/compute-record.ts';
import { ascending, lowerBound } from '../sorted.ts';
import type { Arm } from '../trial/assignment.ts';
import { stepInstants } from './budget-steps.ts';
import { effectiveInTrial, flipsOfAll } from './control-group.ts';
import { type Decision, decide } from './decide.ts';
import { MOST_STEPS, MOST_STEPS_BACK, MOST_STEPS_OF_DECISION, stepsToDecide } from './search-cost.ts';

/** A boundary further ahead than this is found later, when it is nearer. Two years, in milliseconds. */
const BOUNDARY_HORIZON_MS = 2 * 366 * 24 * 60 * 60 * 1000;

/** A boundary further back than this need not be told from one that never was: longer than any deadline. 35 days. */
const BACKWARD_HORIZON_MS = 35 * 24 * 60 * 60 * 1000;

/** Boundaries are those of policies and holds alone: counts of connections are unknown beforehand. */
export interface BoundaryInput {
  policies: CompiledPolicies;
  compute: Compute;
  baseline: ComputeSettings | undefined;
  trials?: TrialRecords | undefined;
  /** As if the compute were in this arm of its trial all along. */
  arm?: Arm | undefined;
  holds?: readonly Hold[] | undefined;
}

/** The result of a search for the next boundary. Milliseconds since the epoch. */
interface BoundarySearch {
  /** Undefined if none was found. */
  boundaryMs: number | undefined;
  /** No desired value changes before this instant, where the search ended: search again then. Absent if the search was complete. */
  searchedUntilMs?: number;
}

/**
 * The next instant strictly after `afterMs` at which any desired field of the compute changes (or those of one group), or at
 * which a restart becomes possible; none if none does within {@link BOUNDARY_HORIZON_MS}. It goes from one change of a policy
 * that may decide to the next, never minute by minute, and ends after {@link MOST_STEPS}; the first change may take {@link MOST_STEPS_OF_DECISION}.
 */
export function searchBoundary(input: BoundaryInput, afterMs: number, group?: FieldGroup): BoundarySearch {
  const before = decisionAt(input, afterMs);
  const others = otherChanges(input);
  let from = before;
  for (let spent = 0; ; ) {
    const instantMs = nextChange(input, others, from.instantMs, group);
    if (instantMs === undefined || instantMs - afterMs > BOUNDARY_HORIZON_MS) return { boundaryMs: undefined };
    const steps = stepsFrom(input, from.instantMs, instantMs);
    if (spent + steps > (spent === 0 ? MOST_STEPS_OF_DECISION : MOST_STEPS))
      return { boundaryMs: undefined, searchedUntilMs: instantMs };
    spent += steps;
    from = decisionAt(input, instantMs);
    if (!sameDesired(before, from, group)) return { boundaryMs: instantMs };
  }
}

/** The boundary that {@link searchBoundary} finds; undefined if it finds none. */
export function nextBoundary(input: BoundaryInput, afterMs: number, group?: FieldGroup): number | undefined {
  return searchBoundary(input, afterMs, group).boundaryMs;
}

/** Half of the time that was searched: a boundary just behind its end is known before it comes. */
export function searchAgainAt(
  searchedFromMs: number,
  { searchedUntilMs }: { searchedUntilMs?: number },
): number | undefined {
  return searchedUntilMs === undefined ? undefined : (searchedFromMs + searchedUntilMs) / 2;
}

/**
 * The latest instant at or before `untilMs` at which a group's wish changed to its present value; −Infinity if that is further back than
 * any deadline, undefined if the search did not reach that far.
 */
export function lastBoundary(input: BoundaryInput, untilMs: number, group: FieldGroup): number | undefined {
  const now = decisionAt(input, untilMs);
  const others = otherChanges(input);
  let from = now;
  for (let spent = 0; ; ) {
    const steps = stepsFrom(input, from.instantMs);
    if (spent + steps > MOST_STEPS_BACK) return undefined;
    const instantMs = lastChange(input, others, from.instantMs, group);
    if (untilMs - instantMs > BACKWARD_HORIZON_MS) return Number.NEGATIVE_INFINITY;
    spent += steps;
    from = decisionAt(input, instantMs - 1);
    if (!sameDesired(now, from, group)) return instantMs;
  }
}

/** The cost of one more decision: at a later instant only policies that change in between are asked again. */
function stepsFrom({ policies, compute }: BoundaryInput, fromMs: number, instantMs?: number): number {
  return stepsToDecide(policies, policies.selecting(compute), (index) => {
    const changesMs = policies.nextChangeAfter(index, fromMs);
    return instantMs === undefined || (changesMs !== undefined && changesMs <= instantMs);
  });
}

/** True if the compute's settings change exactly at this instant. */
export function isBoundary(input: BoundaryInput, instantMs: number): boolean {
  return !sameDesired(decisionAt(input, instantMs - 1), decisionAt(input, instantMs));
}

function decisionAt({ policies, compute, baseline, trials, arm, holds }: BoundaryInput, instantMs: number): Decision {
  return decide({ policies, compute, baseline, trials, arm, holds, instantMs });
}

function nextChange(
  input: BoundaryInput,
  others: readonly number[],
  afterMs: number,
  group?: FieldGroup,
): number | undefined {
  const place = lowerBound(others, afterMs);
  let next = others[others[place] === afterMs ? place + 1 : place];
  for (const index of deciding(input, afterMs, group)) {
    const change = input.policies.nextChangeAfter(index, afterMs);
    if (change !== undefined && !(next !== undefined && next <= change)) next = change;
  }
  return next;
}

function lastChange(input: BoundaryInput, others: readonly number[], untilMs: number, group: FieldGroup): number {
  const place = lowerBound(others, untilMs);
  let last = others[others[place] === untilMs ? place : place - 1] ?? Number.NEGATIVE_INFINITY;
  for (const index of deciding(input, untilMs, group)) {
    last = Math.max(last, input.policies.lastChangeUntil(index, untilMs));
  }
  return last;
}

/** Indexes of the policies that may change the wish. */
function deciding(input: BoundaryInput, instantMs: number, group: FieldGroup | undefined) {
  const { policies, compute, baseline } = input;
  const effective = effectiveInTrial(policies, { ...input, instantMs });
  const mayDecide = whoMayDecide({ effective, baseline, restarts: group === undefined });
  return policies.selecting(compute).filter((index) => {
    const policy = policies.set.policies[index];
    return policy !== undefined && mayDecide(policy, index);
  });
}

/** Ascending, each once. Found once for a search: flips of trials may be thousands. */
function otherChanges(input: BoundaryInput): number[] {
  const { policies, compute, holds = [] } = input;
  const own = holds.filter(({ computeId }) => computeId === compute.computeId);
  // Of a policy for which the compute is still too young, the coming of age is a change.
  const ages = policies.selecting(compute).map((index) => policies.set.policies[index]?.select.minAgeMs ?? 0);
  const flips = input.arm === undefined ? flipsOfAll(policies, input) : [];
  const heldMs = own.flatMap(({ createdAtMs, expiresAtMs }) => [createdAtMs, expiresAtMs]);
  const steps = stepInstants(policies, compute);
  const agesMs = ages.map((ageMs) => compute.createdAtMs + ageMs);
  return [...new Set([...flips, ...heldMs, ...steps, ...waveStarts(policies, compute), ...agesMs])].sort(ascending);
}

/** The starts of the waves in which the compute becomes ready for windows that are about to open. */
export function waveStarts({ readyWaves, set, selecting }: CompiledPolicies, compute: Compute): number[] {
  if (readyWaves.length === 0) return [];
  const ready = selecting(compute).flatMap((index) => {
    const policy = set.policies[index];
    return policy &&
      ruleOf(policy)
        .windows(policy)
        .some(({ readyInWaves }) => readyInWaves)
      ? [policy]
      : [];
  });
  const priorities = [...new Set(ready.map(({ priority }) => priority))];
  return priorities.flatMap((priority) =>
    readyWaves.flatMap(({ opensAtMs }) => {
      const wave = waveOf(readyWaves, { compute, priority, opensAtMs });
      return wave ? [opensAtMs - wave.leadMs] : [];
    }),
  );
}

function sameDesired(a: Decision, b: Decision, group?: FieldGroup): boolean {
  if (group !== undefined) return sameGroup(a, b, group);
  return sameGroup(a, b, 'size') && sameGroup(a, b, 'suspend_timeout') && restartOf(a) === restartOf(b);
}

function sameGroup(a: Decision, b: Decision, group: FieldGroup): boolean {
  return (['desired', 'enforced'] as const).every((which) =>
    group === 'size'
      ? sameSize(a[which].size, b[which].size)
      : a[which].suspendTimeoutSeconds === b[which].suspendTimeoutSeconds,
  );
}

/** Identifies the opening of a restart window. */
function restartOf({ restart }: Decision): string | undefined {
  return restart && `${restart.policyIndex} ${restart.openSinceMs}`;
}

/** The policies and the instant to decide by; with or without openings for restarts. */
interface Question {
  effective: EffectivePolicies;
  baseline: ComputeSettings | undefined;
  restarts: boolean;
}

/**
 * Finds the policies whose changes may change the wish, as long as the policies that decide now don't change. A policy that is outranked
 * in any case need not be followed.
 */
function whoMayDecide({ effective, baseline, restarts }: Question): (policy: Policy, policyIndex: number) => boolean {
  // Found once for all policies: of thousands, any may be the first that has a value.
  const winnersOf = (directives: Directives) => FIELD_GROUPS.map((group) => winnerOf(directives, group, baseline));
  const all = winnersOf(effective.all);
  const enforced = effective.enforced === effective.all ? all : winnersOf(effective.enforced);
  const opening = effective.enforced.restart[0] ?? effective.all.restart[0];
  return (policy, policyIndex) => {
    // Freezes stop writes and want nothing; trials change at flips alone, and budgets when a step begins or ends.
    const rule = ruleOf(policy);
    if (rule.decides === 'nothing') return false;
    if (rule.decides === 'restarts') return restarts && !isOutranked(policy, policyIndex, opening);
    if (rule.decides === 'bounds') return true;
    const windows = rule.windows(policy);
    const views = policy.mode === 'enforce' ? [all, enforced] : [all];
    // Both groups, whichever is asked about: above some size the platform never suspends.
    return FIELD_GROUPS.some(
      (group, place) =>
        // Only windows change: `otherwise` proposes the same at all times.
        windows.some((window) => proposedFor(group, window) !== undefined) &&
        views.some((winners) => mayWin(policy, policyIndex, winners[place])),
    );
  };
}

/** The proposal that decides a group; undefined if none has a value. */
function winnerOf({ values }: Directives, group: FieldGroup, baseline: ComputeSettings | undefined) {
  return values.find((proposal) => {
    const wanted = proposedFor(group, proposal);
    return !proposal.startsEarly && wanted !== undefined && (wanted !== 'baseline' || baseline !== undefined);
  });
}

function proposedFor(
  group: FieldGroup,
  { size, suspendTimeoutSeconds }: Pick<ProposedValues, 'size' | 'suspendTimeoutSeconds'>,
) {
  return group === 'size' ? size : suspendTimeoutSeconds;
}

function mayWin(policy: Policy, policyIndex: number, winner: ProposedValues | undefined): boolean {
  if (!winner) return true;
  const windows = ruleOf(policy).windows(policy);
  // Windows that are about to open may raise sizes before they start, unless a higher priority decides.
  const leads = windows.some(({ readyLeadMs }) => readyLeadMs !== undefined);
  if (leads && winner.policy.priority <= policy.priority) return true;
  const isAbsolute = windows.some(({ at }) => at.some(({ kind }) => kind === 'interval'));
  const source = isAbsolute ? 'absolute' : 'recurring';
  const strongest = { type: 'values', policy, policyIndex, windowIndex: Number.POSITIVE_INFINITY, source } as const;
  return compareProposals(winner, strongest) > 0;
}

function isOutranked(policy: Policy, policyIndex: number, winner: RestartWindow | undefined): boolean {
  if (!winner || winner.policyIndex === policyIndex) return false;
  if (winner.policy.mode !== policy.mode) return winner.policy.mode === 'enforce';
  const byPriority = winner.policy.priority - policy.priority;
  return byPriority > 0 || (byPriority === 0 && winner.policyIndex > policyIndex);
}
