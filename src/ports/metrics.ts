import { QUEUE_NAMES } from './job-queue.ts';
import { COMPUTE_STATUSES } from './operator.ts';

/** Every metric of ebb: name, type, labels, help, and the label sets that exist from the start. docs/metrics.md is checked against it. */
export interface MetricDeclaration {
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  labels: readonly string[];
  /** Upper bounds, in the metric's own unit. */
  buckets?: readonly number[];
  /** Label sets that are exported as 0 before anything happened, so that a rate over them sees the first event. */
  zero?: readonly Readonly<Record<string, string>>[];
}

const SECONDS_TO_MINUTES = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600];
const MILLISECONDS_TO_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const METRICS = {
  ebb_build_info: { type: 'gauge', help: 'Always 1; the version of this daemon.', labels: ['version'] },
  ebb_mode: {
    type: 'gauge',
    help: '1 for the mode in force.',
    labels: ['mode'],
    zero: [{ mode: 'enforce' }, { mode: 'observe' }],
  },
  ebb_policy_load_success: { type: 'gauge', help: '1 if the last load of the policies succeeded.', labels: [] },
  ebb_policy_info: {
    type: 'gauge',
    help: 'Always 1; one series for each policy in force.',
    labels: ['policy', 'kind', 'mode', 'owner', 'file'],
  },
  ebb_staged_changes: {
    type: 'gauge',
    help: 'Computes that a staged policy set would disconnect at once; 0 if none is staged.',
    labels: [],
    zero: [{}],
  },
  ebb_write_blocked: {
    type: 'gauge',
    help: '1 while this daemon may write nothing at all, by reason.',
    labels: ['reason'],
    zero: [{ reason: 'staged' }, { reason: 'superseded' }, { reason: 'clock_off' }],
  },
  ebb_clock_offset_seconds: {
    type: 'gauge',
    help: "How far this machine's clock is ahead of the group's time, as it was last compared.",
    labels: [],
  },
  ebb_computes: {
    type: 'gauge',
    help: 'Computes by what ebb does with them.',
    labels: ['status'],
    zero: COMPUTE_STATUSES.map((status) => ({ status })),
  },
  ebb_holds_active: { type: 'gauge', help: 'Holds of people that are in force.', labels: [] },
  ebb_freeze_active: {
    type: 'gauge',
    help: '1 while a freeze that a person has set is in force, of all computes or of some.',
    labels: [],
  },
  ebb_computes_pending: {
    type: 'gauge',
    help: 'Computes whose change waits, by the gate that holds it.',
    labels: ['reason'],
  },
  ebb_operation_duration_seconds: {
    type: 'histogram',
    help: 'How long an operation took, by the times that the control API gives.',
    labels: ['action', 'status'],
    buckets: SECONDS_TO_MINUTES,
  },
  ebb_operations_total: { type: 'counter', help: 'Operations followed to their end.', labels: ['action', 'status'] },
  ebb_operations_in_flight: {
    type: 'gauge',
    help: 'Operations that ebb started and that have not ended.',
    labels: ['action'],
    zero: ['apply_config', 'suspend_compute', 'start_compute'].map((action) => ({ action })),
  },
  ebb_actions_total: {
    type: 'counter',
    help: 'Changes sent (applied, refused, failed, unknown), or that would have been (observed).',
    labels: ['kind', 'policy', 'outcome'],
  },
  ebb_skipped_total: { type: 'counter', help: 'Changes held back, by reason code.', labels: ['reason'] },
  ebb_decision_duration_seconds: {
    type: 'histogram',
    help: 'How long deciding and planning one project took.',
    labels: [],
    buckets: [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5],
  },
  ebb_boundary_lateness_seconds: {
    type: 'histogram',
    help: 'From the instant of a boundary to the answer of the PATCH that it caused.',
    labels: [],
    buckets: MILLISECONDS_TO_SECONDS,
  },
  ebb_estimated_saved_cu_seconds_total: {
    type: 'counter',
    help: 'Estimated CU-seconds saved against the baseline; a range, since the chosen size is not reported.',
    labels: ['bound'],
    zero: [{ bound: 'low' }, { bound: 'high' }],
  },
  ebb_estimated_added_cu_seconds_total: {
    type: 'counter',
    help: 'Estimated CU-seconds used beyond the baseline; subtract from the saved ones for the balance.',
    labels: ['bound'],
    zero: [{ bound: 'low' }, { bound: 'high' }],
  },
  ebb_api_requests_total: {
    type: 'counter',
    help: 'Requests to the control API by route and status code.',
    labels: ['route', 'code'],
  },
  ebb_api_request_duration_seconds: {
    type: 'histogram',
    help: 'How long the control API took to answer.',
    labels: ['route'],
    buckets: MILLISECONDS_TO_SECONDS,
  },
  ebb_api_throttled_seconds_total: {
    type: 'counter',
    help: 'Time spent waiting for the rate budget or because of 429.',
    labels: [],
  },
  ebb_api_budget_used_ratio: {
    type: 'gauge',
    help: 'Share of the rate budget that this daemon used in the minute before its last request.',
    labels: ['account'],
  },
  ebb_api_key_valid: {
    type: 'gauge',
    help: '1 if the keys of the account are accepted; 0 if one is refused, or can not be read.',
    labels: ['account'],
  },
  ebb_inventory_age_seconds: { type: 'gauge', help: 'Age of the oldest picture of a project.', labels: [] },
  ebb_fleet_lease_held: {
    type: 'gauge',
    help: '1 for the daemon of the group that keeps the picture of the fleet: the only one with series for each compute.',
    labels: [],
    zero: [{}],
  },
  ebb_queue_jobs: { type: 'gauge', help: 'Jobs by queue and state.', labels: ['queue', 'state'] },
  ebb_job_failures_total: {
    type: 'counter',
    help: 'Jobs whose handler failed unexpectedly.',
    labels: ['queue'],
    zero: QUEUE_NAMES.map((queue) => ({ queue })),
  },
  ebb_connections_dropped_total: {
    type: 'counter',
    help: 'Connections that were known when a change by a policy disconnected them; an estimate.',
    labels: ['policy'],
  },
  ebb_connection_source_age_seconds: {
    type: 'gauge',
    help: 'Since a source last gave a count; absent until it has given one.',
    labels: ['source'],
  },
  ebb_connection_source_errors_total: {
    type: 'counter',
    help: 'Computes that a source could not count, by why.',
    labels: ['source', 'code'],
  },
  ebb_outages_total: {
    type: 'counter',
    help: 'Times that a dependency was found to be down.',
    labels: ['dependency'],
    zero: [{ dependency: 'control API' }],
  },
} as const satisfies Record<string, MetricDeclaration>;

export type MetricName = keyof typeof METRICS;
/** The labels that a metric takes, each a string. */
export type MetricLabels<N extends MetricName> = Record<(typeof METRICS)[N]['labels'][number], string>;
type NamesOf<T extends MetricDeclaration['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never;
}[MetricName];
export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;
