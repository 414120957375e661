import type { Compute } from '../../domain/compute/compute.ts';
import { formatChange } from '../../domain/compute/compute-units.ts';
import type { Reason } from '../../domain/compute/reasons.ts';
import { fieldsJson, settingsJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { type Action, gatesOf, reasonsOf } from '../../domain/plan/plan.ts';
import { describeFailing } from '../../domain/records/failures.ts';
import { unknownOutcome } from '../../domain/records/history.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { ComputeEvent, ReportEvent } from '../../ports/compute-events.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

type EventOf<K extends ComputeEvent['kind']> = Extract<ComputeEvent, { kind: K }>;
type Recorders = { [K in ComputeEvent['kind']]: (telemetry: Telemetry, event: EventOf<K>) => void };

/** Logs and counts events of computes. */
export function logEvents(telemetry: Telemetry): ReportEvent {
  return <K extends ComputeEvent['kind']>(event: EventOf<K>) => RECORDERS[event.kind as K](telemetry, event);
}

const RECORDERS: Recorders = {
  write_started({ log }, { compute, action, reasons, origin }) {
    // A change has one line at level info, that of its end.
    log.debug(
      { event: 'ebb.write', phase: 'before', ...describeWrite(compute, action), reasons, ...origin },
      `changing ${nameOf(compute)}: ${whyText(compute, action, reasons)}`,
    );
  },

  write_ended(
    { log, metrics },
    { compute, action, reasons, outcome, operations, error, latenessMs, restartCause: cause, origin },
  ) {
    metrics.increment('ebb_actions_total', { kind: action.kind, policy: action.policy, outcome });
    if (outcome === 'applied' && latenessMs !== undefined) {
      metrics.observe('ebb_boundary_lateness_seconds', {}, latenessMs / 1000);
    }
    if (outcome === 'applied' && cause !== undefined) metrics.increment('ebb_restarts_total', { cause });
    const fields = {
      event: 'ebb.write',
      phase: 'after',
      outcome,
      ...describeWrite(compute, action),
      reasons,
      ...origin,
      operations: operations.map(({ operationId, action: name }) => ({ id: operationId, action: name })),
      ...(error && { error: { code: error.code, status: error.status, route: error.route, request: error.requestId } }),
    };
    const what = `${nameOf(compute)}: ${changeText(compute, action)}`;
    const why = error ? `: ${error.message}` : '';
    if (outcome === 'applied') log.info(fields, `changed ${nameOf(compute)}: ${whyText(compute, action, reasons)}`);
    else if (outcome === 'unknown') log.warn(fields, `${unknownOutcome(error?.status)}: ${what}${why}`);
    else log.warn(fields, `did not change ${what}: ${outcome}${why}`);
  },

  held_back({ log, metrics }, { compute, plan }) {
    const { held = [], waiting } = plan;
    const [action] = held;
    if (!action) return;
    for (const reason of gatesOf(plan)) metrics.increment('ebb_skipped_total', { reason });
    const isObserved = waiting.at(-1)?.gate.code === 'observe';
    if (isObserved) {
      metrics.increment('ebb_actions_total', { kind: action.kind, policy: action.policy, outcome: 'observed' });
    }
    const until = plan.untilMs === undefined ? {} : { until: isoInstant(plan.untilMs) };
    const what = `${nameOf(compute)}: ${held.map((one) => changeText(compute, one)).join(', ')}`;
    const why = new Set(waiting.map((one) => (isObserved ? one.why : one.gate).message));
    log.info(
      { event: 'ebb.held_back', ...describeWrite(compute, action), reasons: reasonsOf(plan), ...until },
      isObserved ? `would change ${nameOf(compute)}: ${[...why].join('; ')}` : `waits: ${what}: ${[...why].join('; ')}`,
    );
  },

  operation_ended({ log, metrics }, { compute, operation, policy }) {
    const labels = { action: operation.action, status: operation.status };
    const durationMs = operation.totalDurationMs ?? operation.updatedAtMs - operation.createdAtMs;
    metrics.increment('ebb_operations_total', labels);
    if (operation.outcome !== 'pending') metrics.observe('ebb_operation_duration_seconds', labels, durationMs / 1000);
    const fields = {
      event: 'ebb.operation',
      project: compute.projectId,
      compute: compute.computeId,
      operation: operation.operationId,
      ...labels,
      duration_ms: durationMs,
      ...(policy !== undefined && { policy }),
    };
    const what = `${operation.action} of ${compute.computeId} of ${compute.projectId}`;
    if (operation.outcome === 'succeeded') log.debug(fields, `${what} took ${durationMs} ms`);
    else log.warn({ ...fields, error: operation.error }, `${what} ended as ${operation.status}`);
  },

  manual_change({ log }, { compute, group, applied, message }) {
    const now = settingsJson(compute);
    log.info(
      {
        event: 'ebb.manual_change',
        project: compute.projectId,
        compute: compute.computeId,
        group,
        applied: fieldsJson(applied),
        now,
      },
      `${nameOf(compute)}: ${message}`,
    );
  },

  degraded({ log }, { compute, desired, failures, message }) {
    log.error(
      { event: 'ebb.degraded', project: compute.projectId, compute: compute.computeId, desired, failures },
      `${describeFailing(compute.computeId, desired)} (${message}); it is tried again in an hour, or when something else is wanted`,
    );
  },
};

function nameOf({ computeId, projectName, projectId }: Compute): string {
  return `${computeId} of ${projectName || projectId}`;
}

/** What changes, and why. */
function whyText(compute: Compute, action: Action, reasons: readonly Reason[]): string {
  return reasons.map(({ message }) => message).join('; ') || `${changeText(compute, action)}: ${action.policy}`;
}

function changeText(compute: Compute, { kind, fields }: Action): string {
  return kind === 'restart' ? 'restart' : formatChange(compute, fields);
}

function describeWrite(compute: Compute, { policy, fields, disconnects }: Action): object {
  return {
    project: compute.projectId,
    compute: compute.computeId,
    policy,
    old: settingsJson(compute),
    new: fieldsJson(fields),
    disconnects,
  };
}
