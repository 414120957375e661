import { describeStep } from '../../domain/describe-step.ts';
import { desiredJson, plannedComputeJson, settingsJson } from '../../domain/fleet-plan-json.ts';
import { isoInstant } from '../../domain/instants.ts';
import type { TraceStep } from '../../domain/trace.ts';
import type { Explanation } from './describe-explanation.ts';

/** As an entry of `ebb plan --json`, with the instant, the baseline, every step and the next boundary. */
export function explanationJson({ atMs, planned, next }: Explanation): object {
  const { compute, record, decision, nextBoundaryMs } = planned;
  const boundary =
    nextBoundaryMs === undefined || next === undefined
      ? null
      : { at: isoInstant(nextBoundaryMs), desired: desiredJson(next, compute) };
  return {
    at: isoInstant(atMs),
    ...plannedComputeJson(planned),
    baseline: settingsJson(record.baseline),
    trace: decision.trace.map(stepJson),
    next_boundary: boundary,
  };
}

function stepJson(step: TraceStep): object {
  const { group, code, opinion, policy = opinion?.policy, hold, before, after, connections } = step;
  return {
    group,
    code,
    ...(policy && { policy: policy.name, mode: policy.mode }),
    ...(hold && { hold: hold.id }),
    ...(before !== undefined && { before: valueJson(before) }),
    ...(after !== undefined && { after: valueJson(after) }),
    ...(connections && { connections }),
    message: describeStep(step),
  };
}

function valueJson(value: TraceStep['after']): object | number | null {
  if (value === undefined || value === null || typeof value === 'number') return value ?? null;
  return { min_cu: value.minCu, max_cu: value.maxCu };
}
