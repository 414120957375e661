import { FIELD_GROUPS, fieldsOf } from '../../domain/compute/compute.ts';
import {
  boundaryAfter,
  type EvaluatedCompute,
  evaluateNow,
  type Situation,
  settledSituation,
} from '../../domain/evaluate/evaluate.ts';
import { wantedSince } from '../../domain/evaluate/wanted-since.ts';
import type { Plan } from '../../domain/plan/plan.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import { earliest } from '../../domain/time/windows/opening.ts';
import type { ComputeStatus } from '../../ports/compute-events.ts';
import { gateRules, type RulesForGates } from '../evaluate-project/evaluate.ts';

/** A change counts as overdue after this time, in milliseconds: at a boundary the rate limit spreads the changes of a fleet. */
const OVERDUE_AFTER_MS = MINUTE_MS;

/** If the plan does not act after this many waits and boundaries, the change counts as not due. */
const MAX_STEPS = 20;

interface Query extends Pick<Situation, 'policies' | 'holds' | 'freezes' | 'nowMs'> {
  rules(): RulesForGates;
  status: ComputeStatus;
}

/**
 * Returns since when an overdue change has been due, milliseconds since the epoch; undefined if no change is overdue. A change that waits is due
 * from the end of its wait. Changes become overdue in an outage of the control API, or if their project is not read.
 */
export function overdueSince(evaluated: EvaluatedCompute, query: Query): number | undefined {
  const { plan, nextChangeMs = Number.POSITIVE_INFINITY } = evaluated;
  const latestMs = query.nowMs - OVERDUE_AFTER_MS;
  /** The next instant at which something becomes due that is not decided yet. */
  const undecidedFromMs = Math.min(
    nextChangeMs,
    plan.verdict === 'wait' ? (plan.untilMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
  );
  const mayActNow = plan.verdict === 'act';
  if (query.status === 'observed' || (!mayActNow && undecidedFromMs > latestMs)) return undefined;
  const situation = situationOf(evaluated, query);
  const decidedDueMs = mayActNow ? decidedSince(evaluated, situation) : undefined;
  const undecidedDueMs = undecidedSince(situation, undecidedFromMs, latestMs);
  const dueMs = earliest([decidedDueMs, undecidedDueMs], (ms) => ms);
  return dueMs !== undefined && dueMs <= latestMs ? dueMs : undefined;
}

/** Returns the situation without failures, which only delay the next attempt: a change that failed had been due before. */
function situationOf({ compute, record }: EvaluatedCompute, { rules, status: _status, ...query }: Query): Situation {
  const { failures: _failed, ...withoutFailures } = record;
  return settledSituation({
    ...query,
    compute,
    record: withoutFailures,
    mode: 'enforce',
    projectBusy: false,
    ...gateRules(rules(), compute),
  });
}

/** Returns the instant since which the changes of a plan could be made: that of the decision, unless an earlier one is known. */
function decidedSince({ decision, record, plan, compute }: EvaluatedCompute, situation: Situation): number {
  const { policies, holds = [] } = situation;
  const input = { policies, holds, compute, ...decidingFacts(record), record, decision };
  const due = FIELD_GROUPS.filter((group) => plan.actions.some(({ fields }) => fieldsOf(group, fields) !== undefined));
  const instants = due.map((group) => wantedSince(input, group)).filter(Number.isFinite);
  const planAt = (nowMs: number) => evaluateNow({ ...situation, nowMs }, decision).plan;
  const endMs = (at: Plan) => at.untilMs;
  return (
    firstActing(planAt, endMs, Math.min(decision.instantMs, ...instants), decision.instantMs) ?? decision.instantMs
  );
}

/** Returns the first instant from `fromMs` on at which a change that is not decided yet could be made, if the compute stays as it is. */
function undecidedSince(situation: Situation, fromMs: number, latestMs: number): number | undefined {
  const planAt = (nowMs: number) => evaluateNow({ ...situation, nowMs }).plan;
  const endMs = ({ untilMs = Number.POSITIVE_INFINITY }: Plan, nowMs: number) =>
    Math.min(untilMs, boundaryAfter(situation, nowMs) ?? Number.POSITIVE_INFINITY);
  return firstActing(planAt, endMs, fromMs, latestMs);
}

/** Returns the first instant at which the plan acts. After each plan that does not act, plans again at the end that `endMs` returns. */
function firstActing(
  planAt: (nowMs: number) => Plan,
  endMs: (plan: Plan, nowMs: number) => number | undefined,
  fromMs: number,
  latestMs: number,
): number | undefined {
  let nowMs = fromMs;
  for (let steps = 0; steps < MAX_STEPS && nowMs <= latestMs; steps += 1) {
    const plan = planAt(nowMs);
    if (plan.verdict === 'act') return nowMs;
    nowMs = Math.max(endMs(plan, nowMs) ?? Number.POSITIVE_INFINITY, nowMs + 1);
  }
  return undefined;
}
