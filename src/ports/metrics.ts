import { COMPUTE_STATUSES } from './compute-events.ts';
import { QUEUE_NAMES } from './job-queue.ts';
import { USAGE_METRICS } from './usage-metrics.ts';

const GUARD_METRICS = {
  ebb_guard_computes: {
    type: 'gauge',
    help: 'Awake computes of a guard, by the last verdict that this daemon got: healthy, bad or unknown.',
    labels: ['guard', 'state'],
  },
  ebb_guard_errors_total: {
    type: 'counter',
    help: 'Questions to a guard that its source did not answer, by code.',
    labels: ['guard', 'code'],
  },
  ebb_guard_watched: {
    type: 'gauge',
    help: 'Computes that a guard watches after a lowering. Only the leader exports it.',
    labels: ['guard'],
  },
  ebb_guard_floors: {
    type: 'gauge',
    help: 'Computes that a guard keeps above what policies want now. Only the leader exports it.',
    labels: ['guard'],
  },
  ebb_guard_watches_total: {
    type: 'counter',
    help: 'What a guard found after lowerings: healthy, harm, no_samples or common_cause.',
    labels: ['guard', 'outcome'],
  },
} as const;

const NOTIFICATION_METRICS = {
  ebb_notifications_total: {
    type: 'counter',
    help: 'Attempts to send a notification, by receiver: sent, failed (tried again), or dead (not tried again); folded came within another.',
    labels: ['receiver', 'result'],
  },
  ebb_notifications_waiting: {
    type: 'gauge',
    help: 'Notifications that wait to be sent, by receiver.',
    labels: ['receiver'],
  },
  ebb_notifications_oldest_seconds: {
    type: 'gauge',
    help: 'Age of the oldest notification that should have been sent, by receiver; 0 if there is none, or it waits because of per_hour.',
    labels: ['receiver'],
  },
  ebb_notifications_dead: {
    type: 'gauge',
    help: 'Notifications that could not be sent and are not tried again (`ebb notify retry` or `drop`).',
    labels: ['receiver'],
  },
  ebb_notifications_lost: {
    type: 'gauge',
    help: 'Notifications lost since the store was made, because more came than it keeps.',
    labels: [],
    zero: [{}],
  },
} as const;

export interface MetricDeclaration {
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  labels: readonly string[];
  /** Upper bounds, in the metric's unit. */
  buckets?: readonly number[];
  /** Label sets that are exported as 0 before anything happened, so that a rate over them sees the first event. */
  zero?: readonly Readonly<Record<string, string>>[];
}

/** Periodic work of a daemon besides its jobs. */
const BACKGROUND_TASKS = [
  'triggers',
  'resync',
  'clock_check',
  'store_check',
  'leader_lease',
  'leader_refresh',
  'project_cleanup',
  'reload',
  'queue_pause',
  'source_schedule',
  'connection_counts',
  'guards',
  'usage',
  'waste',
  'notifications',
  'daemon_report',
  'audit_export',
  'audit_webhook',
  'ready_waves',
  'readings',
  'key_check',
] as const;

export type BackgroundTask = (typeof BACKGROUND_TASKS)[number];

const SECONDS_TO_MINUTES = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600];
const MILLISECONDS_TO_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Every metric of ebb. docs/metrics.md is checked against it. */
export const METRICS = {
  ebb_build_info: { type: 'gauge', help: 'Always 1; the version of this daemon.', labels: ['version'] },
  ebb_mode: {
    type: 'gauge',
    help: '1 for the current mode.',
    labels: ['mode'],
    zero: [{ mode: 'enforce' }, { mode: 'observe' }],
  },
  ebb_policy_load_success: { type: 'gauge', help: '1 if the last load of the policies succeeded.', labels: [] },
  ebb_policy_info: {
    type: 'gauge',
    help: 'Always 1; one series per current policy.',
    labels: ['policy', 'kind', 'mode', 'owner', 'file'],
  },
  ebb_staged_changes: {
    type: 'gauge',
    help: 'Computes that a staged policy set would disconnect, also those that wait first; 0 if none is staged.',
    labels: [],
    zero: [{}],
  },
  ebb_renamed_into_scope_total: {
    type: 'counter',
    help: "Computes that a team's policies began to select because their project was renamed.",
    labels: [],
    zero: [{}],
  },
  ebb_team_policy_load_success: {
    type: 'gauge',
    help: "1 if the last load of a team's files succeeded.",
    labels: ['owner'],
  },
  ebb_team_staged_changes: {
    type: 'gauge',
    help: 'Computes that the staged policies of a team would disconnect, also those that wait first; 0 if none are staged.',
    labels: ['owner'],
  },
  ebb_write_blocked: {
    type: 'gauge',
    help: '1 while this daemon may write nothing at all, by reason.',
    labels: ['reason'],
    zero: [{ reason: 'staged' }, { reason: 'superseded' }, { reason: 'clock_off' }],
  },
  ebb_clock_offset_seconds: {
    type: 'gauge',
    help: "How far this machine's clock is ahead of the store clock, as last compared.",
    labels: [],
  },
  ebb_stored_time_ahead_seconds: {
    type: 'gauge',
    help: "How far stored times were ahead of this machine's clock in the last 5 minutes; otherwise 0.",
    labels: [],
    zero: [{}],
  },
  ebb_computes: {
    type: 'gauge',
    help: 'Computes by status.',
    labels: ['status'],
    zero: COMPUTE_STATUSES.map((status) => ({ status })),
  },
  ebb_computes_unreadable: {
    type: 'gauge',
    help: 'Computes that the control API lists in a form that ebb does not understand.',
    labels: [],
  },
  ebb_holds_active: { type: 'gauge', help: 'Active holds.', labels: [] },
  ebb_freeze_active: {
    type: 'gauge',
    help: '1 while a freeze set by a person is active, for all computes or some.',
    labels: [],
  },
  ebb_computes_pending: {
    type: 'gauge',
    help: 'Computes with a waiting change, by the gate that blocks it and by owner; a compute may wait for two gates.',
    labels: ['reason', 'owner'],
  },
  ebb_operation_duration_seconds: {
    type: 'histogram',
    help: 'Duration of operations, from the times that the control API reports.',
    labels: ['action', 'status'],
    buckets: SECONDS_TO_MINUTES,
  },
  ebb_operations_total: {
    type: 'counter',
    help: 'Operations that ended, by action and final status.',
    labels: ['action', 'status'],
  },
  ebb_operations_in_flight: {
    type: 'gauge',
    help: 'Operations that ebb started and that have not ended.',
    labels: ['action'],
    zero: ['apply_config', 'suspend_compute', 'start_compute'].map((action) => ({ action })),
  },
  ebb_actions_total: {
    type: 'counter',
    help: 'Changes sent (applied, refused, failed, unknown), or not sent in observe mode (observed).',
    labels: ['kind', 'policy', 'outcome'],
  },
  ebb_restarts_total: {
    type: 'counter',
    help: 'Changes that restarted a compute, by cause: boundary (of a policy), person (a hold, a restore or an approved set), or other.',
    labels: ['cause'],
    zero: ['boundary', 'person', 'other'].map((cause) => ({ cause })),
  },
  ebb_skipped_total: { type: 'counter', help: 'Changes blocked, by reason code.', labels: ['reason'] },
  ebb_decision_duration_seconds: {
    type: 'histogram',
    help: 'Time to decide and plan one project.',
    labels: [],
    buckets: [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5],
  },
  ebb_boundary_lateness_seconds: {
    type: 'histogram',
    help: 'Time from a boundary to the response of the PATCH that it caused.',
    labels: [],
    buckets: MILLISECONDS_TO_SECONDS,
  },
  ebb_estimated_saved_cu_seconds_total: {
    type: 'counter',
    help: 'Estimated CU-seconds saved against the baseline, as a range.',
    labels: ['bound'],
    zero: [{ bound: 'low' }, { bound: 'high' }],
  },
  ebb_estimated_added_cu_seconds_total: {
    type: 'counter',
    help: 'Estimated CU-seconds used beyond the baseline: the balance is saved minus added.',
    labels: ['bound'],
    zero: [{ bound: 'low' }, { bound: 'high' }],
  },
  ...USAGE_METRICS,
  ebb_api_requests_total: {
    type: 'counter',
    help: 'Requests to the control API by route and status code.',
    labels: ['route', 'code'],
  },
  ebb_api_request_duration_seconds: {
    type: 'histogram',
    help: 'Response time of the control API.',
    labels: ['route'],
    buckets: MILLISECONDS_TO_SECONDS,
  },
  ebb_api_throttled_seconds_total: {
    type: 'counter',
    help: 'Time spent waiting for the rate budget or because of 429.',
    labels: [],
  },
  ebb_api_stalled_seconds: {
    type: 'gauge',
    help: 'How long requests of the account have waited with no response but 429; 0 while requests succeed.',
    labels: ['account'],
  },
  ebb_api_budget_used_ratio: {
    type: 'gauge',
    help: 'Share of the rate budget that this daemon used in the minute before its last request.',
    labels: ['account'],
  },
  ebb_api_limit_level: {
    type: 'gauge',
    help: 'What was learnt from 429: 0 the documented limit is used, 1 a quarter less in a second, 2 also evenly over the minute, each further level half of that.',
    labels: ['account'],
  },
  ebb_api_key_valid: {
    type: 'gauge',
    help: '1 if all keys of the account are accepted; 0 if one is refused or cannot be read.',
    labels: ['account'],
  },
  ebb_inventory_age_seconds: { type: 'gauge', help: 'Age of the oldest cached project.', labels: [] },
  ebb_leader: {
    type: 'gauge',
    help: '1 for the leader of the group, the only daemon that exports series per compute.',
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
  ebb_background_failures_total: {
    type: 'counter',
    help: 'Failed runs of background tasks while queue and store were available.',
    labels: ['task'],
    zero: BACKGROUND_TASKS.map((task) => ({ task })),
  },
  ebb_connections_dropped_total: {
    type: 'counter',
    help: 'Connections, as last counted, that changes by a policy disconnected; an estimate.',
    labels: ['policy'],
  },
  ebb_connection_source_age_seconds: {
    type: 'gauge',
    help: 'Time since a source last returned a count; absent before the first.',
    labels: ['source'],
  },
  ebb_connection_source_errors_total: {
    type: 'counter',
    help: 'Computes that a source could not count, by error code.',
    labels: ['source', 'code'],
  },
  ebb_store_lost_total: {
    type: 'counter',
    help: 'How often a used store was found empty.',
    labels: [],
    zero: [{}],
  },
  ebb_overrides_restored_total: {
    type: 'counter',
    help: 'Holds and freezes that the store had lost and a daemon wrote back.',
    labels: ['kind'],
    zero: [{ kind: 'hold' }, { kind: 'freeze' }],
  },
  ebb_outages_total: {
    type: 'counter',
    help: 'How often a dependency became unavailable.',
    labels: ['dependency'],
    zero: [{ dependency: 'control API' }],
  },
  ebb_projects_refused_total: {
    type: 'counter',
    help: 'How often the control API refused a single project.',
    labels: [],
    zero: [{}],
  },
  ...GUARD_METRICS,
  ...NOTIFICATION_METRICS,
} as const satisfies Record<string, MetricDeclaration>;

type MetricName = keyof typeof METRICS;
export type MetricLabels<N extends MetricName> = Record<(typeof METRICS)[N]['labels'][number], string>;
type NamesOf<T extends MetricDeclaration['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never;
}[MetricName];
export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;
