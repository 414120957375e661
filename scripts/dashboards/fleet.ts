import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { connections } from './connections.ts';
import {
  ACCOUNT,
  addRow,
  COMPUTE,
  chart,
  labelVariable,
  list,
  NONE_DROPPED,
  numbers,
  OWNER,
  ofComputes,
  ofOwnedPolicies,
  type Panel,
  POLICY,
  PROJECT,
  startDashboard,
  timeline,
} from './parts.ts';

/** The whole fleet at a glance: what is current, what differs, what it saves. */
export function fleetDashboard(): DashboardBuilder {
  const dashboard = startDashboard({
    uid: 'ebb-fleet',
    title: 'ebb / Fleet',
    description: 'What ebb does with the fleet, what it waits for, and what it saves.',
  });
  for (const variable of [ACCOUNT, OWNER, PROJECT, COMPUTE, POLICY]) dashboard.withVariable(labelVariable(variable));
  addRow(dashboard, 'What ebb did for you', didForYou());
  addRow(dashboard, 'Now', now());
  addRow(dashboard, 'Wanted and actual', wantedAndActual());
  addRow(dashboard, 'Connections', connections());
  addRow(dashboard, 'Changes', changes());
  addRow(dashboard, 'Use', use());
  return dashboard;
}

/** The first row: what there would not be without ebb. */
function didForYou(): Panel[] {
  const bound = (metric: string) => `sum by (bound) (increase(${metric}[$__range]))`;
  const ofPolicies = (metric: string) => ofOwnedPolicies(`increase(${metric}{policy=~"$policy"}[$__range])`);
  return [
    numbers({
      title: 'CU-hours saved in the time range',
      description:
        'Estimate against the baseline of each compute, less what was added: a range, since the API does not tell which size autoscaling has chosen.',
      queries: [
        {
          expr: `(${bound('ebb_estimated_saved_cu_seconds_total')} - ${bound('ebb_estimated_added_cu_seconds_total')}) / 3600`,
          legend: '{{bound}}',
        },
      ],
      width: 8,
    }),
    numbers({
      title: 'Changes in the time range',
      description: 'Changes sent, or (observed) that would have been sent, by outcome.',
      queries: [{ expr: `sum by (outcome) (${ofPolicies('ebb_actions_total')})`, legend: '{{outcome}}' }],
      width: 6,
    }),
    numbers({
      title: 'Connections dropped in the time range',
      description: 'Clients that were connected when a change of ebb restarted their compute. An estimate.',
      queries: [{ expr: `sum(${ofPolicies('ebb_connections_dropped_total')})` }],
      ifEmpty: NONE_DROPPED,
      width: 5,
    }),
    numbers({
      title: 'Asleep now',
      description: 'Computes that sleep, and those that are known. A sleeping compute costs nothing.',
      queries: [
        { expr: `count(${ofComputes('ebb_compute_state', 'state="active"')} == 0) or vector(0)`, legend: 'asleep' },
        { expr: `count(${ofComputes('ebb_compute_state', 'state="active"')}) or vector(0)`, legend: 'known' },
      ],
      width: 5,
    }),
  ];
}

function now(): Panel[] {
  return [
    numbers({
      title: 'Mode',
      description: 'observe: nothing is written. enforce: computes are changed.',
      queries: [{ expr: 'max by (mode) (ebb_mode) == 1', legend: '{{mode}}' }],
      names: { '1': 'active' },
      width: 3,
    }),
    numbers({
      title: 'Freeze',
      description: 'Whether a person has frozen all computes or some.',
      queries: [{ expr: 'max(ebb_freeze_active)' }],
      names: { '0': 'none', '1': 'active' },
      width: 3,
    }),
    numbers({
      title: 'Holds',
      description: 'Active holds.',
      queries: [{ expr: 'max(ebb_holds_active)' }],
      width: 3,
    }),
    numbers({
      title: 'Policies',
      description:
        'Whether the last load succeeded on every daemon, and how many computes a staged set would disconnect.',
      queries: [
        { expr: 'min(ebb_policy_load_success)', legend: 'loaded (1: yes)' },
        { expr: 'max(ebb_staged_changes)', legend: 'staged' },
      ],
      width: 4,
    }),
    numbers({
      title: 'Writing blocked',
      description: '1: a daemon writes nothing at all, for this reason.',
      queries: [{ expr: 'max by (reason) (ebb_write_blocked)', legend: '{{reason}}' }],
      width: 6,
    }),
    numbers({
      title: 'API budget used',
      description: 'Share of the rate budget of the control API used in the last minute, by account.',
      queries: [{ expr: 'max by (account) (ebb_api_budget_used_ratio{account=~"$account"})', legend: '{{account}}' }],
      unit: 'percentunit',
      width: 5,
    }),
    chart({
      title: 'Computes by status',
      description:
        'Of the whole fleet, the first that applies: frozen, not_loaded, degraded, held, orphaned, unmatched, observed, enforced.',
      queries: [{ expr: 'max by (status) (ebb_computes)', legend: '{{status}}' }],
      stacked: true,
      width: 24,
    }),
  ];
}

function wantedAndActual(): Panel[] {
  const wanted = ofComputes('ebb_compute_desired_max_cu');
  return [
    chart({
      title: 'Waiting changes, by reason',
      description: 'Computes with a waiting change, by the gate that blocks it. docs/reasons.md describes the codes.',
      queries: [
        {
          expr: 'sum by (reason) (max by (reason, owner) (ebb_computes_pending{owner=~"$owner"}))',
          legend: '{{reason}}',
        },
      ],
      stacked: true,
      width: 12,
    }),
    chart({
      title: 'Maximum differs from desired',
      description: 'Desired maximum of the computes that have a different one; 0 while there is none.',
      queries: [
        { expr: `${wanted} != ${ofComputes('ebb_compute_max_cu')}`, legend: '{{compute}} wanted' },
        { expr: `count(${wanted} != ${ofComputes('ebb_compute_max_cu')}) or vector(0)`, legend: 'computes' },
      ],
      stepped: true,
      width: 12,
    }),
  ];
}

/** A policy has one owner; while daemons disagree, one of them. */
const POLICY_OWNER = 'topk by (policy) (1, max by (policy, owner) (ebb_policy_info{owner=~"$owner"}))';

function changes(): Panel[] {
  const done = 'sum by (policy, outcome) (increase(ebb_actions_total{policy=~"$policy"}[24h]))';
  return [
    list({
      title: 'Changes of the last 24 hours, by owner',
      description: 'Changes sent, or (observed) that would have been sent, by the owner of their policy.',
      queries: [{ expr: `sum by (owner, outcome) (${done} * on (policy) group_left (owner) ${POLICY_OWNER})` }],
      value: 'changes',
      width: 8,
    }),
    chart({
      title: 'Changes by policy',
      description: 'Changes sent, or that would have been sent, an hour.',
      queries: [
        {
          expr: `sum by (policy, outcome) ${ofOwnedPolicies('rate(ebb_actions_total{policy=~"$policy"}[$__rate_interval])')} * 3600`,
          legend: '{{policy}} {{outcome}}',
        },
      ],
      width: 8,
    }),
    chart({
      title: 'Restarts by ebb',
      description: 'Computes that ebb has restarted, an hour: a start that belongs to one of its changes.',
      queries: [
        {
          expr: 'sum(rate(ebb_operations_total{action="start_compute"}[$__rate_interval])) * 3600 or vector(0)',
          legend: 'restarts',
        },
      ],
      width: 8,
    }),
  ];
}

function use(): Panel[] {
  const awake = `(${ofComputes('ebb_compute_state', 'state="active"')} == 1)`;
  return [
    chart({
      title: 'CU of the computes that are awake',
      description: 'Sum of the minimums and of the maximums of their ranges; actual use is between.',
      queries: [
        { expr: `sum(${ofComputes('ebb_compute_min_cu')} and ${awake}) or vector(0)`, legend: 'at least' },
        { expr: `sum(${ofComputes('ebb_compute_max_cu')} and ${awake}) or vector(0)`, legend: 'at most' },
      ],
      width: 9,
    }),
    list({
      title: 'Most hours awake in the last 24',
      description:
        'Hours in which they were seen awake, coloured from 20 on: who never sleeps may need a schedule or a shorter timeout.',
      // By the minute, over all daemons: the one that exports a compute may have been another one in between.
      queries: [
        { expr: `topk(20, sum_over_time((${ofComputes('ebb_compute_state', 'state="active"')})[24h:1m]) / 60)` },
      ],
      value: 'hours',
      colouredFrom: 20,
      width: 9,
    }),
    timeline({
      title: 'Awake and asleep',
      description: 'Choose some projects: one band for each compute.',
      queries: [{ expr: ofComputes('ebb_compute_state', 'state="active"'), legend: '{{compute}}' }],
      names: { '0': 'asleep', '1': 'awake' },
      width: 24,
    }),
  ];
}
