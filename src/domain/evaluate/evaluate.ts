import { afterOperation, type Compute, type FieldGroup, groupOf, isRaise } from '../compute/compute.ts';
import type { Reason } from '../compute/reasons.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import { type ConnectionHistory, connectionsAt } from '../connections/connections.ts';
import { lastBoundary, nextBoundary, searchBoundary } from '../decide/boundaries.ts';
import { trialOf } from '../decide/control-group.ts';
import { type Decision, decide } from '../decide/decide.ts';
import { lastStepEnd } from '../decide/stages/budget.ts';
import type { DatedVerdict } from '../guards/state.ts';
import type { Verdict } from '../guards/verdict.ts';
import { type Freeze, freezesAt } from '../overrides/freezes.ts';
import { type Hold, setByNow } from '../overrides/holds.ts';
import { restoreAt } from '../overrides/restore.ts';
import { changesOf } from '../plan/change.ts';
import type { GateInput, GuardVerdict } from '../plan/gates/gate.ts';
import { manualChange } from '../plan/gates/people.ts';
import type { Respected } from '../plan/manual-changes.ts';
import { type Plan, plan } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { GuardPolicy } from '../policy/kinds/guard.ts';
import { asKind, ruleOf } from '../policy/kinds/kinds.ts';
import { type ComputeRecord, decidingFacts, lastChangeMs, type RestartCause } from '../records/compute-record.ts';
import { HOUR_MS } from '../time/units.ts';
import { nextChange } from './next-change.ts';
import { deadlineStartAfterFlip, trialGateInput } from './trials.ts';
import { firstNotedMs, wantedSince } from './wanted-since.ts';

/**
 * A set is the cause only if the value was first wanted within this time of its becoming current, in milliseconds. Daemons of a group load the
 * set one after the other, and an outage delays the first decision about a compute.
 */
const MAX_DISTANCE_TO_SET_MS = HOUR_MS;

/** Other daemons of a group may take a set up to this long before this one, in milliseconds, but not before its approval. */
const TAKEN_BEFORE_MS = 30_000;

/** The input of an evaluation of one compute at an instant. */
export interface Situation
  extends Pick<
    GateInput,
    'mode' | 'projectBusy' | 'verified' | 'disruption' | 'manualChanges' | 'isAtOnceReached' | 'isAtMostReached'
  > {
  policies: CompiledPolicies;
  compute: Compute;
  record: ComputeRecord | undefined;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** Holds of all computes. */
  holds?: readonly Hold[];
  /** Freezes set by people, for all computes. */
  freezes?: readonly Freeze[];
  /** Counts of connections; absent where headroom is not evaluated. */
  connections?: ConnectionHistory;
  profile?: ConnectionProfile;
  /** The last verdict of a guard. Undefined or absent: it has not been asked, so the verdict is unknown. */
  verdictOf?(guard: GuardPolicy): DatedVerdict | undefined;
}

export interface Evaluation {
  decision: Decision;
  plan: Plan;
  /** The next instant at which the wanted settings change or a restart becomes possible; undefined if none was found. */
  nextBoundaryMs: number | undefined;
  /**
   * The next instant at which ebb changes the compute, if nothing else changes it. Boundaries do not count at which people keep the compute
   * as it is. Undefined if none was found.
   */
  nextChangeMs: number | undefined;
  /** The instants until which manual changes are respected; absent if there are none. */
  respected?: Respected;
  /** Set if the search ended early because policies change too often: no boundary lies before this instant. */
  searchedUntilMs?: number;
}

/** A compute, its evaluation, and the record behind it. */
export interface EvaluatedCompute extends Evaluation {
  compute: Compute;
  /** The updated record; a new one if none is stored. */
  record: ComputeRecord;
}

/** Decides the settings of a compute and plans its actions, for the daemon and all commands. Pure. */
export function evaluate(situation: Situation): Evaluation {
  const { boundaryMs, ...search } = searchBoundary(decideInput(situation), situation.nowMs);
  const now = evaluateNow(situation);
  const nextChangeMs = nextChangeOf(situation, now.decision, boundaryMs);
  return { ...now, nextBoundaryMs: boundaryMs, nextChangeMs, ...search };
}

/** The next change. If neither people nor freezes may keep the compute as it is, that is the next boundary, without a search. */
function nextChangeOf(
  situation: Situation,
  decision: Decision,
  nextBoundaryMs: number | undefined,
): number | undefined {
  const { policies, compute, record, nowMs, holds = [] } = situation;
  const input = decideInput(situation);
  const freezes = freezesAt(situation.freezes ?? [], compute, nowMs);
  // Many fleets have a freeze for a few days of a year, and most evaluations are far from these.
  const isFrozenThen = () =>
    nextBoundaryMs !== undefined &&
    policies.selecting(compute).some((index) => stopsWrites(policies, index)) &&
    decide({ ...input, instantMs: nextBoundaryMs }).freezes.length > 0;
  const mayBeKept =
    freezes.length > 0 ||
    decision.freezes.length > 0 ||
    record?.manual !== undefined ||
    record?.reversals !== undefined ||
    holds.some(({ computeId, freeze }) => freeze && computeId === compute.computeId) ||
    isFrozenThen();
  if (!mayBeKept) return nextBoundaryMs;
  // Future counts of connections are unknown.
  const { connections: _connections, ...later } = settledSituation(situation);
  return nextChange({
    nowMs,
    nextBoundaryMs,
    freezes,
    boundaryAfter: (instantMs) => nextBoundary(input, instantMs),
    evaluateAt: (instantMs) => evaluateNow({ ...later, mode: 'enforce', nowMs: instantMs }),
  });
}

function stopsWrites({ set }: CompiledPolicies, index: number): boolean {
  const policy = set.policies[index];
  return policy !== undefined && ruleOf(policy).stopsWrites;
}

/**
 * The situation, now or at other instants, if the state of the compute stays as it is. Running operations are assumed to be over, a change
 * without an answer to be settled, a restart that was sent to have happened, and guards to be healthy. Limits on restarts are left out: they
 * only spread actions.
 */
export function settledSituation(situation: Situation): Situation {
  const { isAtOnceReached: _once, isAtMostReached: _most, compute, record, ...rest } = situation;
  const settled = {
    compute: withLastRestart(afterOperation(compute), record),
    record: record && settledRecord(record),
  };
  return { ...rest, ...settled, ...HEALTHY_GUARDS };
}

function settledRecord({ intent: _unanswered, ...record }: ComputeRecord): ComputeRecord {
  return { ...record, openOperations: [] };
}

/** The compute with its start moved to ebb's last restart if that is later: readings may not show it yet. */
function withLastRestart(compute: Compute, record: ComputeRecord | undefined): Compute {
  const { startedAtMs } = compute;
  const restartedAtMs = record?.lastDisruption?.atMs ?? 0;
  return startedAtMs === undefined || startedAtMs >= restartedAtMs
    ? compute
    : { ...compute, startedAtMs: restartedAtMs };
}

/** Like {@link evaluate}, without the search for the next boundary. `decided` replaces the decision: then only the gates are evaluated. */
export function evaluateNow(
  situation: Situation,
  decided?: Decision,
): Omit<Evaluation, 'nextBoundaryMs' | 'nextChangeMs' | 'searchedUntilMs'> {
  const { policies, compute, record, nowMs, holds, freezes = [], connections, profile, ...gates } = situation;
  const input = decideInput(situation);
  const inputNow = { ...input, connections, profile, restore: restoreAt(record, nowMs), instantMs: nowMs };
  const decision = decided ?? decide(inputNow);
  const trial = trialGateInput(inputNow);
  const lastEndMs = lastStepEnd(policies, compute, nowMs);
  const restoreAskedAtMs = (group: FieldGroup) =>
    decision.enforcedDeciders[group]?.restore?.askedAtMs ?? Number.NEGATIVE_INFINITY;
  const planInput = {
    decision,
    compute,
    record,
    nowMs,
    freezes: freezesAt(freezes, compute, nowMs),
    connections: connectionsAt(connections, compute, nowMs),
    nextBoundaryAfter: (afterMs: number, group?: FieldGroup) => nextBoundary(input, afterMs, group),
    policyBoundaryAfter: (afterMs: number, group?: FieldGroup) => nextBoundary({ ...input, holds: [] }, afterMs, group),
    enforcedAt: (instantMs: number) => decide({ ...inputNow, instantMs }).enforced,
    wantedSince: (group: FieldGroup) =>
      Math.max(
        restoreAskedAtMs(group),
        wantedSince({ ...input, record, decision }, group),
        deadlineStartAfterFlip(trial, group, nowMs),
      ),
    guards: verdictsOf(situation),
    trial,
    stepEndedAtMs: (group: FieldGroup) =>
      lastEndMs !== undefined && lastBoundary(input, nowMs, group) === lastEndMs ? lastEndMs : undefined,
    ...gates,
  };
  const respected = record?.manual && respectedOf(planInput);
  return { decision, plan: plan(planInput), ...(respected && { respected }) };
}

/** The ends of respected manual changes, even if a freeze holds the change back first; undefined if there are none. */
function respectedOf(input: Omit<GateInput, 'change'>): Respected | undefined {
  const changes = changesOf(input.decision, input.compute, input.verified);
  const ends = changes.flatMap((change) => {
    const untilMs = change.group === 'restart' ? undefined : manualChange({ ...input, change })?.untilMs;
    return untilMs === undefined ? [] : [[change.group, untilMs] as const];
  });
  return ends.length === 0 ? undefined : Object.fromEntries(ends);
}

/**
 * The next instant after `afterMs` at which the wanted settings change or a restart becomes possible, both milliseconds since the epoch;
 * undefined if none was found.
 */
export function boundaryAfter(situation: Situation, afterMs: number): number | undefined {
  return nextBoundary(decideInput(situation), afterMs);
}

function decideInput({
  policies,
  compute,
  record,
  nowMs,
  holds = [],
}: Pick<Situation, 'policies' | 'compute' | 'record' | 'nowMs' | 'holds'>) {
  return { policies, compute, ...decidingFacts(record), holds: setByNow(holds, nowMs) };
}

/**
 * The cause of the restarts that a plan makes. A boundary is the cause only if the value has been wanted from exactly that instant on.
 * Otherwise nobody could foresee the restart: a policy was edited, connections changed, or somebody else set a value.
 */
export function restartCause(
  situation: Situation,
  { decision, plan: { actions, why } }: Pick<Evaluation, 'decision' | 'plan'>,
): RestartCause {
  if (isAskedByPerson(why)) return 'person';
  if (why.some(({ code }) => code === 'restart_due')) return 'boundary';
  const group = groupOf(actions[0]?.fields ?? {});
  const boundaryMs = lastBoundaryOf(situation, group);
  const since = wantedSince({ ...decideInput(situation), record: situation.record, decision }, group);
  return boundaryMs === since && Number.isFinite(boundaryMs) ? 'boundary' : 'other';
}

/** The last boundary of a group of fields, milliseconds since the epoch; −Infinity or undefined if none was found. */
function lastBoundaryOf(situation: Situation, group: FieldGroup): number | undefined {
  return lastBoundary(decideInput(situation), situation.nowMs, group);
}

/** {@link changeDueSince} passes over at most this many boundaries that only moved the wanted size. */
const MAX_PASSED = 4;

/**
 * Returns the boundary since which a group of fields has been due to change, milliseconds since the epoch. If the size was due in the same
 * direction just before a boundary, as at a further step of a budget, the boundary before it counts. −Infinity or undefined if none was found.
 */
export function changeDueSince(
  situation: Situation,
  { group, raises }: { group: FieldGroup; raises: boolean },
): number | undefined {
  const input = decideInput(situation);
  const { compute } = situation;
  let dueMs = lastBoundary(input, situation.nowMs, group);
  for (let passed = 0; group === 'size' && passed < MAX_PASSED; passed += 1) {
    if (dueMs === undefined || !Number.isFinite(dueMs)) break;
    const { size } = decide({ ...input, instantMs: dueMs - 1 }).enforced;
    if (!size || !(raises ? isRaise(compute, size) : isRaise(size, compute))) break;
    dueMs = lastBoundary(input, dueMs - 1, group);
  }
  return dueMs;
}

/** Returns true if a person wants the change that restarts. Its reason is the first: a new timeout is only sent beside it. */
function isAskedByPerson([first]: readonly Reason[]): boolean {
  return first?.code === 'hold' || first?.code === 'restore';
}

/**
 * Returns the policy set whose loading made the restarts of a plan due, even if limits and operations have delayed them. It is the cause if the
 * value has been wanted since the set became current, no boundary came after that, nobody has changed the value, and neither headroom nor a
 * person wants it.
 */
export function causingSet<S extends TakenSet>(
  situation: Situation,
  { decision, plan: { actions, why } }: Pick<Evaluation, 'decision' | 'plan'>,
  sets: readonly S[] = [],
): S | undefined {
  const { record } = situation;
  if (sets.length === 0 || why.some(({ code }) => code.startsWith('headroom')) || isAskedByPerson(why))
    return undefined;
  const group = groupOf(actions[0]?.fields ?? {});
  const boundaryMs = lastBoundaryOf(situation, group) ?? 0;
  const sinceMs = wantedSince({ ...decideInput(situation), record, decision }, group);
  // By the new policies, a value may have been wanted since a boundary before the set was loaded. The change is then due to the set, unless an
  // earlier decision wanted the value.
  const isSinceBoundary = sinceMs <= boundaryMs;
  const dueMs = isSinceBoundary ? firstNotedMs({ record, decision }, group) : sinceMs;
  const otherCauseMs = Math.max(boundaryMs, (record && lastChangeMs(record, group)) ?? 0);
  const distanceMs = ({ currentSinceMs }: S) => Math.abs(dueMs - currentSinceMs);
  const wasWantedBefore = (set: S) => isSinceBoundary && dueMs < firstTakenMs(set);
  const [nearest] = sets
    .filter(
      (set) => distanceMs(set) <= MAX_DISTANCE_TO_SET_MS && otherCauseMs < set.currentSinceMs && !wasWantedBefore(set),
    )
    .toSorted((a, b) => distanceMs(a) - distanceMs(b));
  return nearest;
}

/** A policy set, and when it became current and was approved, milliseconds since the epoch. */
interface TakenSet {
  currentSinceMs: number;
  approver?: { atMs?: readonly number[] } | undefined;
}

/** The earliest instant at which a daemon of the group may have taken a set, milliseconds since the epoch. */
function firstTakenMs({ currentSinceMs, approver }: TakenSet): number {
  return Math.max(currentSinceMs - TAKEN_BEFORE_MS, ...(approver?.atMs ?? []));
}

/** The assumption of predictions that all guards are healthy. */
export const HEALTHY_GUARDS: Pick<Situation, 'verdictOf'> = {
  verdictOf: () => ({ state: 'healthy', message: 'assumed to be healthy' }),
};

const NOT_ASKED: Verdict = { state: 'unknown', message: 'it has to be asked first' };

function verdictsOf({ policies, compute, nowMs, verdictOf }: Situation): GuardVerdict[] {
  return guardsOf(policies, compute, nowMs).map((guard) => ({
    policy: guard.name,
    remedy: guard.remedy,
    verdict: verdictOf?.(guard) ?? NOT_ASKED,
  }));
}

/** The enforcing guards that select the compute, in the order of the set. */
export function guardsOf(policies: CompiledPolicies, compute: Compute, nowMs: number): GuardPolicy[] {
  return policies.selecting(compute).flatMap((index) => {
    const guard = asKind(policies.set.policies[index], 'guard');
    return guard?.mode === 'enforce' && policies.selects(index, compute, nowMs) ? [guard] : [];
  });
}

/**
 * True if a manual change will be reverted: an enforcing policy or a hold wants another value, and manual changes are not respected. Ignores
 * connections, since counts change every minute, and a restore, since its target may change with this result.
 */
export function isReverted(
  situation: Pick<Situation, 'policies' | 'compute' | 'record' | 'nowMs' | 'holds' | 'manualChanges'>,
  group: FieldGroup,
): boolean {
  const { policies, compute, nowMs, manualChanges } = situation;
  const input = decideInput(situation);
  if (trialOf(policies, input)?.periodEndMs(nowMs) !== undefined) return false;
  const decision = decide({ ...input, instantMs: nowMs });
  const change = changesOf(decision, compute).find((one) => one.group === group);
  return change?.isObserved === false && (change.manualChanges ?? manualChanges)?.kind === 'revert';
}
