/** docs/metrics.md, made of the table of metrics. */
import { COMPUTE_METRICS } from '../src/adapters/telemetry/telemetry.ts';
import { METRICS, type MetricDeclaration } from '../src/ports/metrics.ts';
import { GENERATED, table } from './markdown.ts';

export function renderMetricsDoc(): string {
  return `# Metrics

${GENERATED}

What \`ebb run\` serves at \`/metrics\`. Units are base units (seconds, CU), ratios go from 0 to 1. Names that end in \`_total\` are counters, those with buckets
histograms, all others gauges. Label sets with a fixed list of values are exported as 0 from the start.

${tableOf(METRICS)}

## Per compute

Only [the leader](operations.md#the-leader) exports them. On other daemons the gauges of the whole fleet (\`ebb_computes\`, \`ebb_computes_pending\`,
\`ebb_operations_in_flight\`, \`ebb_inventory_age_seconds\`) are 0. \`per_compute_metrics: false\` turns them off. \`project\` is the project's id;
\`ebb_compute_info\` has its name, account, region and owner:

\`\`\`
ebb_compute_max_cu * on (project, compute) group_left (project_name, owner) ebb_compute_info
\`\`\`

${tableOf(COMPUTE_METRICS)}

\`process_*\` and \`nodejs_*\` are the default metrics of prom-client.
`;
}

function tableOf(metrics: Readonly<Record<string, MetricDeclaration>>): string {
  const rows = Object.entries(metrics).map(([name, { labels, help, zero, buckets }]) => [
    `\`${name}\``,
    labels.map((label) => `\`${label}\`${valuesOf(zero, label)}`).join(', '),
    buckets === undefined ? help : `${help} Buckets: ${buckets[0]} to ${buckets.at(-1)}.`,
  ]);
  return table(['name', 'labels', 'meaning'], rows);
}

function valuesOf(zero: MetricDeclaration['zero'], label: string): string {
  const values = [...new Set((zero ?? []).map((set) => set[label]).filter((value) => value !== undefined))];
  return values.length === 0 ? '' : ` (${values.map((value) => `\`${value}\``).join(', ')})`;
}
