import { FIELD_GROUPS, fieldsOf } from '../../domain/compute/compute.ts';
import {
  boundaryAfter,
  type EvaluatedCompute,
  evaluateNow,
  laterSituation,
  type Situation,
} from '../../domain/evaluate/evaluate.ts';
import { wantedSince } from '../../domain/evaluate/wanted-since.ts';
import type { Plan } from '../../domain/plan/plan.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { ComputeStatus } from '../../ports/compute-events.ts';
import { gateRules, type RulesForGates } from '../evaluate-project/evaluate.ts';

/** A change counts as overdue after this time: at a boundary the rate limit spreads the changes of a fleet. */
const OVERDUE_AFTER_MS = MINUTE_MS;

/** Waits and boundaries that are looked at before a change counts as not due. */
const MAX_STEPS = 20;

interface Asked extends Pick<Situation, 'policies' | 'holds' | 'freezes' | 'nowMs'> {
  /** Waits and disconnections are judged by these, as in decisions. */
  rules(): RulesForGates;
  status: ComputeStatus;
}

/**
 * Since when a change is due that is not made, milliseconds since the epoch; undefined if none is overdue. One that waits is due from the end
 * of its wait. In an outage of the control API changes are not made, and those of a project without a recent reading are not even decided.
 */
export function overdueSince(evaluated: EvaluatedCompute, asked: Asked): number | undefined {
  const { plan, nextChangeMs = Number.POSITIVE_INFINITY } = evaluated;
  const latestMs = asked.nowMs - OVERDUE_AFTER_MS;
  const undecidedMs = Math.min(
    nextChangeMs,
    plan.verdict === 'wait' ? (plan.untilMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
  );
  const isAct = plan.verdict === 'act';
  if (asked.status === 'observed' || (!isAct && undecidedMs > latestMs)) return undefined;
  const situation = situationOf(evaluated, asked);
  const dueMs = [
    isAct ? decidedSince(evaluated, situation) : undefined,
    undecidedSince(situation, undecidedMs, latestMs),
  ];
  const overdue = dueMs.flatMap((ms) => (ms !== undefined && ms <= latestMs ? [ms] : []));
  return overdue.length === 0 ? undefined : Math.min(...overdue);
}

/** What is left out only delays another attempt: a change that failed has been due since before. */
function situationOf({ compute, record }: EvaluatedCompute, { rules, status: _status, ...asked }: Asked): Situation {
  const { failures: _failed, ...withoutFailures } = record;
  return laterSituation({
    ...asked,
    compute,
    record: withoutFailures,
    mode: 'enforce',
    projectBusy: false,
    ...gateRules(rules(), compute),
  });
}

/** Since when the changes of a plan could be made: since they were decided, unless an earlier instant is known. */
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

/** The first instant from `fromMs` on at which a change that is not decided yet could be made, if the compute stays as it is. */
function undecidedSince(situation: Situation, fromMs: number, latestMs: number): number | undefined {
  const planAt = (nowMs: number) => evaluateNow({ ...situation, nowMs }).plan;
  const endMs = ({ untilMs = Number.POSITIVE_INFINITY }: Plan, nowMs: number) =>
    Math.min(untilMs, boundaryAfter(situation, nowMs) ?? Number.POSITIVE_INFINITY);
  return firstActing(planAt, endMs, fromMs, latestMs);
}

/** The first instant at which the plan acts; after a wait, it is made again when that ends. */
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
