import { stepJson } from '../../domain/decide/trace.ts';
import { desiredJson, plannedComputeJson, settingsJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { isoInstant } from '../../domain/time/instants.ts';
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
