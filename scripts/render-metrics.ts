/** docs/metrics.md, made of the table of metrics. */
import { COMPUTE_METRICS } from '../src/adapters/telemetry/compute-series.ts';
import { METRICS, type MetricDeclaration } from '../src/ports/metrics.ts';
import { GENERATED, table } from './markdown.ts';

export function renderMetricsDoc(): string {
  return `# Metrics

${GENERATED}

\`ebb run\` serves them at \`/metrics\` in the Prometheus text format. Units are base units (seconds, CU), counters end in \`_total\`, ratios
go from 0 to 1. Closed label sets are there from the start with 0, so that a rate over them sees the first event.

${tableOf(METRICS)}

## For each compute

Rendered from the daemon's picture at each scrape: they vanish with their compute. Of a group of daemons one exports them, of all computes:
the one with \`ebb_fleet_lease_held\` 1 ([operations](operations.md#the-picture-of-the-fleet)). Elsewhere they are absent, and what counts the fleet
(\`ebb_computes\`, \`ebb_computes_pending\`, \`ebb_operations_in_flight\`, \`ebb_inventory_age_seconds\`) is 0. \`per_compute_metrics: false\` in
\`ebb.yaml\` switches them off. \`project\` is the id of the project; join with \`ebb_compute_info\` for its name, the account, the region and the owner:

\`\`\`
ebb_compute_max_cu * on (project, compute) group_left (project_name, owner) ebb_compute_info
\`\`\`

${tableOf(COMPUTE_METRICS)}

## Of the process

\`process_*\` and \`nodejs_*\`: the default metrics of prom-client (CPU, memory, event loop, garbage collection), without three
(\`nodejs_active_handles_total\`, \`nodejs_active_requests_total\`, \`nodejs_active_resources_total\`) whose names break the naming rules.
`;
}

function tableOf(metrics: Readonly<Record<string, MetricDeclaration>>): string {
  const rows = Object.entries(metrics).map(([name, { type, labels, help, zero, buckets }]) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\`${valuesOf(zero, label)}`).join(', '),
    buckets === undefined ? help : `${help} Buckets: ${buckets.join(', ')}.`,
  ]);
  return table(['name', 'type', 'labels', 'meaning'], rows);
}

function valuesOf(zero: MetricDeclaration['zero'], label: string): string {
  const values = [...new Set((zero ?? []).map((set) => set[label]).filter((value) => value !== undefined))];
  return values.length === 0 ? '' : ` (${values.join(', ')})`;
}
