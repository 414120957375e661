/** grafana/dashboards/*.json, made by the builders in scripts/dashboards. */
import type { DashboardBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { computeDashboard } from './dashboards/compute.ts';
import { costDashboard } from './dashboards/cost.ts';
import { daemonDashboard } from './dashboards/daemon.ts';
import { fleetDashboard } from './dashboards/fleet.ts';
import { operationsDashboard } from './dashboards/operations.ts';

const BUILDERS: Readonly<Record<string, () => DashboardBuilder>> = {
  'ebb-fleet.json': fleetDashboard,
  'ebb-compute.json': computeDashboard,
  'ebb-operations.json': operationsDashboard,
  'ebb-daemon.json': daemonDashboard,
  'ebb-cost.json': costDashboard,
};

/** The files of `grafana/dashboards`, by name. */
export const DASHBOARD_FILES: readonly string[] = Object.keys(BUILDERS);

/** The text of one of `DASHBOARD_FILES`. */
export function renderDashboard(file: string): string {
  const build = BUILDERS[file];
  if (build === undefined) throw new Error(`no dashboard is called ${file}`);
  const dashboard = build().build();
  // Links to a panel, and its alerts, go by its number.
  for (const [index, panel] of (dashboard.panels ?? []).entries()) panel.id = index + 1;
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}
