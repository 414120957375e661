import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  ACCOUNT,
  addRow,
  chart,
  labelVariable,
  numbers,
  OWNER,
  type Panel,
  quantiles,
  startDashboard,
} from './parts.ts';

/** Operations and the control API: how long, how often, how it fails. */
export function operationsDashboard(): DashboardBuilder {
  const dashboard = startDashboard({
    uid: 'ebb-operations',
    title: 'ebb / Operations and API',
    description: 'Operations that ebb follows, requests to the control API, the rate budget, the queue.',
  })
    .withVariable(labelVariable({ ...ACCOUNT, metric: 'ebb_api_key_valid' }))
    .withVariable(labelVariable({ ...OWNER, metric: 'ebb_computes_pending' }));
  addRow(dashboard, 'Operations', operations());
  addRow(dashboard, 'Control API', controlApi());
  addRow(dashboard, 'Queue', queue());
  return dashboard;
}

function operations(): Panel[] {
  return [
    chart({
      title: 'Duration by action',
      description: 'From the times that the control API reports.',
      queries: quantiles('ebb_operation_duration_seconds', 'action'),
      unit: 's',
      width: 8,
    }),
    chart({
      title: 'Ended, an hour',
      description: 'Operations that ended, by action and status.',
      queries: [
        {
          expr: 'sum by (action, status) (rate(ebb_operations_total[$__rate_interval])) * 3600',
          legend: '{{action}} {{status}}',
        },
      ],
      width: 8,
    }),
    chart({
      title: 'In flight',
      description: 'Operations that ebb started and that have not ended.',
      queries: [{ expr: 'max by (action) (ebb_operations_in_flight)', legend: '{{action}}' }],
      stacked: true,
      width: 8,
    }),
    chart({
      title: 'Changes blocked, an hour',
      description: 'By reason code: docs/reasons.md.',
      queries: [{ expr: 'sum by (reason) (rate(ebb_skipped_total[$__rate_interval])) * 3600', legend: '{{reason}}' }],
      width: 12,
    }),
    chart({
      title: 'Waiting changes, by owner',
      description: 'Computes with a waiting change, by owner and the gate that blocks it.',
      queries: [
        {
          expr: 'max by (owner, reason) (ebb_computes_pending{owner=~"$owner"})',
          legend: '{{owner}} {{reason}}',
        },
      ],
      width: 12,
    }),
  ];
}

function controlApi(): Panel[] {
  return [
    chart({
      title: 'Requests by code',
      description: 'Requests a second by HTTP status; a request without an answer by the code of its failure.',
      queries: [{ expr: 'sum by (code) (rate(ebb_api_requests_total[$__rate_interval]))', legend: '{{code}}' }],
      unit: 'reqps',
      stacked: true,
      width: 8,
    }),
    chart({
      title: 'Requests by route',
      description: 'Requests a second.',
      queries: [{ expr: 'sum by (route) (rate(ebb_api_requests_total[$__rate_interval]))', legend: '{{route}}' }],
      unit: 'reqps',
      width: 8,
    }),
    chart({
      title: 'Answer time by route',
      description: 'Response time of the control API.',
      queries: quantiles('ebb_api_request_duration_seconds', 'route'),
      unit: 's',
      width: 8,
    }),
    chart({
      title: 'Rate budget used',
      description: 'Share of what an account may send in a minute.',
      queries: [{ expr: 'max by (account) (ebb_api_budget_used_ratio{account=~"$account"})', legend: '{{account}}' }],
      unit: 'percentunit',
      width: 8,
    }),
    chart({
      title: 'Waiting for the budget',
      description: 'Seconds a second spent waiting for the rate budget or because of 429, over all calls.',
      queries: [{ expr: 'sum(rate(ebb_api_throttled_seconds_total[$__rate_interval]))', legend: 'waiting' }],
      width: 8,
    }),
    numbers({
      title: 'Keys',
      description: 'Whether the keys of the account are accepted.',
      queries: [{ expr: 'min by (account) (ebb_api_key_valid{account=~"$account"})', legend: '{{account}}' }],
      names: { '0': 'refused', '1': 'accepted' },
      width: 8,
      height: 8,
    }),
  ];
}

function queue(): Panel[] {
  return [
    chart({
      title: 'Jobs',
      description: 'By queue and state. Delayed jobs are boundaries to come.',
      queries: [{ expr: 'max by (queue, state) (ebb_queue_jobs)', legend: '{{queue}} {{state}}' }],
      width: 12,
    }),
    chart({
      title: 'Trouble, an hour',
      description: 'Jobs that failed unexpectedly, and how often a dependency became unavailable.',
      queries: [
        {
          expr: 'sum by (queue) (rate(ebb_job_failures_total[$__rate_interval])) * 3600',
          legend: 'failed jobs of {{queue}}',
        },
        {
          expr: 'sum by (dependency) (rate(ebb_outages_total[$__rate_interval])) * 3600',
          legend: 'outages of {{dependency}}',
        },
      ],
      width: 12,
    }),
  ];
}
