import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { ACCOUNT, addRow, chart, labelVariable, list, OWNER, type Panel, quantiles, startDashboard } from './parts.ts';

/** The daemon itself: is it in time, and what does it take. */
export function daemonDashboard(): DashboardBuilder {
  const dashboard = startDashboard({
    uid: 'ebb-daemon',
    title: 'ebb / Daemon',
    description: 'Lateness, decisions, memory, event loop of each daemon, and its current policies.',
  })
    .withVariable(labelVariable({ ...ACCOUNT, metric: 'ebb_api_key_valid' }))
    .withVariable(labelVariable({ ...OWNER, metric: 'ebb_policy_info' }));
  addRow(dashboard, 'Work', work());
  addRow(dashboard, 'Process', processPanels());
  addRow(dashboard, 'Policies', [
    list({
      title: 'Current policies',
      description: 'As the daemons have loaded them.',
      queries: [{ expr: 'max by (policy, kind, mode, owner, file) (ebb_policy_info{owner=~"$owner"})' }],
      value: 'current',
      width: 16,
    }),
    list({
      title: 'Daemons',
      description: 'Every daemon that is scraped, with its version; 1 for the leader.',
      queries: [
        {
          expr: 'max by (instance, version) (ebb_build_info * on (job, instance) group_left ebb_leader)',
        },
      ],
      value: 'keeps the fleet',
      width: 8,
    }),
  ]);
  return dashboard;
}

function work(): Panel[] {
  return [
    chart({
      title: 'Lateness at boundaries',
      description: 'Time from a boundary to the response of the change that it caused.',
      queries: quantiles('ebb_boundary_lateness_seconds'),
      unit: 's',
      width: 8,
    }),
    chart({
      title: 'Decisions a second',
      description: 'Projects decided and planned.',
      queries: [
        {
          expr: 'sum by (instance) (rate(ebb_decision_duration_seconds_count[$__rate_interval]))',
          legend: '{{instance}}',
        },
      ],
      width: 8,
    }),
    chart({
      title: 'Time of a decision',
      description: 'Time to decide and plan one project.',
      queries: quantiles('ebb_decision_duration_seconds'),
      unit: 's',
      width: 8,
    }),
    chart({
      title: 'Age of the oldest cached project',
      description: 'Unchanged projects are read again in turn, so this grows with the fleet.',
      queries: [{ expr: 'max(ebb_inventory_age_seconds)', legend: 'age' }],
      unit: 's',
      width: 8,
    }),
    chart({
      title: 'Clock',
      description: "How far the machine's clock is ahead of the store clock. Beyond 2 s nothing is written.",
      queries: [{ expr: 'max by (instance) (abs(ebb_clock_offset_seconds))', legend: '{{instance}}' }],
      unit: 's',
      width: 8,
    }),
    chart({
      title: 'Learnt from 429',
      description: '0: the documented rate limit is used; each level above sends less (ebb_api_limit_level).',
      queries: [{ expr: 'max by (account) (ebb_api_limit_level{account=~"$account"})', legend: '{{account}}' }],
      width: 8,
    }),
  ];
}

function processPanels(): Panel[] {
  const ofDaemons = (expr: string) => `${expr} and on (job, instance) ebb_build_info`;
  return [
    chart({
      title: 'Memory',
      description: 'Resident.',
      queries: [{ expr: ofDaemons('process_resident_memory_bytes'), legend: '{{instance}}' }],
      unit: 'bytes',
      width: 8,
    }),
    chart({
      title: 'CPU',
      description: 'Cores in use.',
      queries: [{ expr: ofDaemons('rate(process_cpu_seconds_total[$__rate_interval])'), legend: '{{instance}}' }],
      width: 8,
    }),
    chart({
      title: 'Event loop',
      description: 'Delay of the event loop, 99th percentile.',
      queries: [{ expr: ofDaemons('nodejs_eventloop_lag_p99_seconds'), legend: '{{instance}}' }],
      unit: 's',
      width: 8,
    }),
  ];
}
