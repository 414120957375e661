import type { ReasonCode } from '../../domain/compute/reasons.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';

/** The last consecutive evaluations of a compute in which a change waited for the platform. Instants are milliseconds since the epoch. */
export interface HeldSpan {
  sinceMs: number;
  untilMs: number;
  /** What the change waited for in the last of these evaluations. */
  message: string;
}

/** Gates that neither a policy nor a person causes. The gates of failures are left out, since the record has the failures. */
const OF_THE_PLATFORM: ReadonlySet<ReasonCode> = new Set(['operation_running', 'answer_unknown', 'reading_lags']);

interface SpanFleet {
  heldSpans: Map<string, HeldSpan>;
  ownEvaluation(computeId: string): EvaluatedCompute | undefined;
}

/** Notes that a change waits for the platform in this evaluation. Call it before the evaluation replaces the last one in the fleet. */
export function noteHeld(
  { heldSpans, ownEvaluation }: SpanFleet,
  { compute: { computeId }, plan, decision: { instantMs } }: EvaluatedCompute,
): void {
  const gate = platformGate(plan);
  if (!gate) return;
  const before = ownEvaluation(computeId);
  const span = before && platformGate(before.plan) ? heldSpans.get(computeId) : undefined;
  heldSpans.set(computeId, { sinceMs: span?.sinceMs ?? instantMs, untilMs: instantMs, message: gate.message });
}

function platformGate({ waiting }: EvaluatedCompute['plan']) {
  return waiting.find(({ gate }) => OF_THE_PLATFORM.has(gate.code))?.gate;
}
