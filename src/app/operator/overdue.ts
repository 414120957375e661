import { FIELD_GROUPS, fieldsOf } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { wantedSince } from '../../domain/evaluate/wanted-since.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { ComputeStatus } from '../../ports/compute-events.ts';

/** A change counts as overdue after this time: at a boundary the rate limit spreads the changes of a fleet. */
const OVERDUE_AFTER_MS = MINUTE_MS;

interface Situation {
  policies: CompiledPolicies;
  holds: readonly Hold[];
  status: ComputeStatus;
  nowMs: number;
}

/**
 * Since when a change is due that is not made, milliseconds since the epoch; undefined if none is overdue. In an outage of the control API
 * changes are not made, and those of a project without a recent reading are not even decided.
 */
export function overdueSince(evaluated: EvaluatedCompute, { status, nowMs, ...rules }: Situation): number | undefined {
  if (status === 'observed') return undefined;
  const dueMs = [
    ...(evaluated.nextChangeMs === undefined ? [] : [evaluated.nextChangeMs]),
    ...(evaluated.plan.verdict === 'act' ? [dueSince(evaluated, rules)] : []),
  ];
  const overdue = dueMs.filter((ms) => ms <= nowMs - OVERDUE_AFTER_MS);
  return overdue.length === 0 ? undefined : Math.min(...overdue);
}

/** Since when the changes of a plan are wanted: since they were decided, unless an earlier instant is known. */
function dueSince(
  { compute, record, decision, plan }: EvaluatedCompute,
  rules: Pick<Situation, 'policies' | 'holds'>,
): number {
  const input = { ...rules, compute, ...decidingFacts(record), record, decision };
  const due = FIELD_GROUPS.filter((group) => plan.actions.some(({ fields }) => fieldsOf(group, fields) !== undefined));
  const instants = due.map((group) => wantedSince(input, group)).filter(Number.isFinite);
  return Math.min(decision.instantMs, ...instants);
}
