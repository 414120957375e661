import type { ComputeSettings } from '../../domain/compute/compute.ts';
import { gatesOf, reasonsOf } from '../../domain/plan/plan.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { ComputeEvent, ReportEvent } from '../../ports/compute-events.ts';
import type { Telemetry } from '../../ports/telemetry.ts';

type EventOf<K extends ComputeEvent['kind']> = Extract<ComputeEvent, { kind: K }>;
type Recorders = { [K in ComputeEvent['kind']]: (telemetry: Telemetry, event: EventOf<K>) => void };

/** Makes log lines and metrics of everything that happens to computes. */
export function logEvents(telemetry: Telemetry): ReportEvent {
  return <K extends ComputeEvent['kind']>(event: EventOf<K>) => RECORDERS[event.kind as K](telemetry, event);
}

const RECORDERS: Recorders = {
  write_started({ log }, { compute, action, reasons, origin }) {
    log.info(
      { event: 'ebb.write', phase: 'before', ...describeWrite(compute, action), reasons, ...origin },
      `changing ${compute.computeId}: ${reasons[0]?.message ?? action.policy}`,
    );
  },

  write_ended({ log, metrics }, { compute, action, outcome, operations, error, latenessMs, origin }) {
    metrics.increment('ebb_actions_total', { kind: action.kind, policy: action.policy, outcome });
    if (outcome === 'applied' && latenessMs !== undefined) {
      metrics.observe('ebb_boundary_lateness_seconds', {}, latenessMs / 1000);
    }
    const fields = {
      event: 'ebb.write',
      phase: 'after',
      outcome,
      ...describeWrite(compute, action),
      ...origin,
      operations: operations.map(({ operationId, action: name }) => ({ id: operationId, action: name })),
      ...(error && { error: { code: error.code, status: error.status, route: error.route, request: error.requestId } }),
    };
    if (outcome === 'applied') log.info(fields, `changed ${compute.computeId}`);
    else log.warn(fields, `did not change ${compute.computeId}: ${outcome}${error ? `: ${error.message}` : ''}`);
  },

  held_back({ log, metrics }, { compute, plan }) {
    const action = plan.held?.[0];
    const held = plan.waiting.at(-1)?.gate;
    if (!action || !held) return;
    for (const reason of gatesOf(plan)) metrics.increment('ebb_skipped_total', { reason });
    if (held.code === 'observe') {
      metrics.increment('ebb_actions_total', { kind: action.kind, policy: action.policy, outcome: 'observed' });
    }
    const until = plan.untilMs === undefined ? {} : { until: isoInstant(plan.untilMs) };
    log.info(
      { event: 'ebb.held_back', ...describeWrite(compute, action), reasons: reasonsOf(plan), ...until },
      `${held.code === 'observe' ? 'would change' : 'not changing yet'} ${compute.computeId}: ${held.message}`,
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
    if (operation.outcome === 'succeeded') log.info(fields, `${operation.action} took ${durationMs} ms`);
    else log.warn({ ...fields, error: operation.error }, `${operation.action} ended as ${operation.status}`);
  },

  manual_change({ log }, { compute, group, applied, message }) {
    const now = writtenOut(compute);
    log.info(
      {
        event: 'ebb.manual_change',
        project: compute.projectId,
        compute: compute.computeId,
        group,
        applied: writtenOut(applied),
        now,
      },
      `${compute.computeId}: ${message}`,
    );
  },

  degraded({ log }, { compute, desired, failures, message }) {
    log.error(
      { event: 'ebb.degraded', project: compute.projectId, compute: compute.computeId, desired, failures },
      `${compute.computeId} can't be changed (${message}); it is tried again in an hour, or when something else is wanted`,
    );
  },
};

function describeWrite(
  compute: EventOf<'write_started'>['compute'],
  action: EventOf<'write_started'>['action'],
): object {
  return {
    project: compute.projectId,
    compute: compute.computeId,
    policy: action.policy,
    old: { min_cu: compute.minCu, max_cu: compute.maxCu, suspend_timeout_seconds: compute.suspendTimeoutSeconds },
    new: {
      min_cu: action.fields.minCu,
      max_cu: action.fields.maxCu,
      suspend_timeout_seconds: action.fields.suspendTimeoutSeconds,
    },
    disconnects: action.disconnects,
  };
}

function writtenOut({ minCu, maxCu, suspendTimeoutSeconds }: Partial<ComputeSettings>): object {
  return { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds };
}
