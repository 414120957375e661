import type { ReasonCode } from '../../domain/compute/reasons.ts';
import { describeStep, type TraceStep } from '../../domain/decide/trace.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { Fleet } from '../fleet/fleet.ts';

/** What headroom says that somebody must know who wonders about a size. */
const REPORTED: ReadonlySet<ReasonCode> = new Set([
  'headroom',
  'headroom_advised',
  'headroom_over_limit',
  'headroom_unmet',
  'stabilising',
  'connections_unknown',
]);

export interface LogHeadroomDeps {
  fleet: Fleet;
  telemetry: Telemetry;
}

/** Says it once when headroom begins, or ceases, to say something else than before of a compute. */
export function logHeadroom({ fleet, telemetry }: LogHeadroomDeps, { compute, decision }: EvaluatedCompute): void {
  const before = reportedSteps(fleet.evaluatedCompute(compute.computeId)?.decision.trace ?? []);
  const after = reportedSteps(decision.trace);
  if (signature(before) === signature(after)) return;
  const { projectId: project, computeId } = compute;
  const steps = after.map(({ code, policy, connections }) => ({ code, policy: policy?.name, ...connections }));
  const message = after.length === 0 ? 'has enough connections' : after.map((step) => describeStep(step)).join('; ');
  telemetry.log.info({ event: 'ebb.headroom', project, compute: computeId, steps }, `${computeId}: ${message}`);
}

function reportedSteps(trace: readonly TraceStep[]): TraceStep[] {
  return trace.filter(({ code }) => REPORTED.has(code));
}

/** Without the counts, which change all the time. */
function signature(steps: readonly TraceStep[]): string {
  return JSON.stringify(steps.map(({ code, policy, after }) => [code, policy?.name, after]));
}
