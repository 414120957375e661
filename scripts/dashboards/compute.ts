import { AnnotationQueryBuilder, type DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  ACCOUNT,
  addRow,
  COMPUTE,
  chart,
  labelVariable,
  list,
  NO_SOURCE,
  numbers,
  OWNER,
  ofChosenOwners,
  ofComputes,
  PROJECT,
  startDashboard,
  timeline,
} from './parts.ts';

/** One compute: what it has, what it should have, and when either changed. */
export function computeDashboard(): DashboardBuilder {
  const dashboard = startDashboard({
    uid: 'ebb-compute',
    title: 'ebb / Compute',
    description: 'One compute: state, actual and desired size, timeout; changes as annotations.',
  })
    .withVariable(labelVariable(ACCOUNT))
    .withVariable(labelVariable(OWNER))
    .withVariable(labelVariable({ ...PROJECT, single: true }))
    .withVariable(labelVariable({ ...COMPUTE, single: true }))
    .annotation(changeMarks({ name: 'Wanted size changed', metric: 'ebb_compute_desired_max_cu', colour: 'blue' }))
    .annotation(changeMarks({ name: 'Size changed', metric: 'ebb_compute_max_cu', colour: 'orange' }));
  const info = 'max by (project_name, branch, type, account, region, owner)';
  addRow(dashboard, '$compute', [
    list({
      title: 'What it is',
      description: 'Labels of the compute; the owner is that of the policy that decides.',
      queries: [
        {
          expr: `${info} (ebb_compute_info{account=~"$account", owner=~"$owner", project=~"$project", compute=~"$compute"})`,
        },
      ],
      value: 'known',
      width: 16,
      height: 4,
    }),
    numbers({
      title: 'Suspends after',
      description: 'Idle time after which it suspends; -1 for never.',
      queries: [{ expr: ofComputes('ebb_compute_suspend_timeout_seconds') }],
      unit: 's',
      names: { '-1': 'never' },
      width: 8,
    }),
    timeline({
      title: 'State',
      description: 'The last known state.',
      queries: [
        {
          expr: `max by (state) ${ofChosenOwners('ebb_compute_state{project=~"$project", compute=~"$compute"}')}`,
          legend: '{{state}}',
        },
      ],
      names: { '0': ' ', '1': 'yes' },
      width: 24,
      height: 5,
    }),
    sizeChart(),
    connectionsChart(),
  ]);
  return dashboard;
}

function sizeChart(): ReturnType<typeof chart> {
  return chart({
    title: 'Size',
    description: 'Actual and desired autoscaling range, in CU.',
    queries: [
      { expr: ofComputes('ebb_compute_min_cu'), legend: 'minimum' },
      { expr: ofComputes('ebb_compute_max_cu'), legend: 'maximum' },
      { expr: ofComputes('ebb_compute_desired_min_cu'), legend: 'wanted minimum' },
      { expr: ofComputes('ebb_compute_desired_max_cu'), legend: 'wanted maximum' },
    ],
    stepped: true,
    width: 24,
    height: 10,
  });
}

function connectionsChart(): ReturnType<typeof chart> {
  return chart({
    title: 'Connections against max_connections',
    description:
      'Clients as last counted, and how many the server accepts at its size. Empty where nobody counts them.',
    queries: [
      { expr: ofComputes('ebb_connections'), legend: 'connections' },
      { expr: ofComputes('ebb_max_connections'), legend: 'max_connections' },
    ],
    stepped: true,
    ifEmpty: NO_SOURCE,
    width: 24,
    height: 10,
  });
}

function changeMarks(options: { name: string; metric: string; colour: string }): AnnotationQueryBuilder {
  const { name, metric, colour } = options;
  const changed = ofChosenOwners(`changes(${metric}{project=~"$project", compute=~"$compute"}[$__rate_interval])`);
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource({ type: 'prometheus', uid: '$datasource' })
    .enable(true)
    .iconColor(colour)
    .expr(`max by (compute) ${changed} > 0`)
    .titleFormat(name)
    .textFormat('{{compute}}')
    .step('1m');
}
