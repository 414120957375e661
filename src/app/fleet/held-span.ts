import type { ReasonCode } from '../../domain/compute/reasons.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';

/** The last evaluations of a compute, one after the other, in which a change waited for the platform. Milliseconds since the epoch. */
export interface HeldSpan {
  sinceMs: number;
  untilMs: number;
  /** What the last of them waited for. */
  message: string;
}

/** Gates that no policy and no person causes. Those of failures are not among them: a record has its failures. */
const OF_THE_PLATFORM: ReadonlySet<ReasonCode> = new Set(['operation_running', 'answer_unknown', 'reading_lags']);

interface Noted {
  heldSpans: Map<string, HeldSpan>;
  ownEvaluation(computeId: string): EvaluatedCompute | undefined;
}

/** Notes an evaluation whose changes wait for the platform, before it replaces the last one. */
export function noteHeld(
  { heldSpans, ownEvaluation }: Noted,
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
