/** What the dashboards ask Prometheus. */
import { DASHBOARD_FILES, renderDashboard } from '../../scripts/render-dashboards.ts';

export interface DashboardQuery {
  /** Dashboard, panel and place in it: `ebb-fleet.json / Mode / A`. */
  name: string;
  expr: string;
  /** False for what Grafana asks for at a single instant. */
  isRange: boolean;
}

interface DashboardJson {
  panels: {
    title: string;
    type: string;
    description?: string;
    fieldConfig?: { defaults: { noValue?: string } };
    targets?: { refId: string; expr: string; instant?: boolean }[];
  }[];
  annotations?: { list: { name: string; expr?: string }[] };
  templating: { list: { name: string; type: string; definition?: string }[] };
}

export function dashboardJson(file: string): DashboardJson {
  return JSON.parse(renderDashboard(file));
}

/** Every query of every panel and annotation, variables still in it. */
export function dashboardQueries(): DashboardQuery[] {
  return DASHBOARD_FILES.flatMap((file) => {
    const { panels, annotations } = dashboardJson(file);
    const ofPanels = panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr, instant }) => ({ name: `${file} / ${title} / ${refId}`, expr, isRange: !instant })),
    );
    const ofAnnotations = (annotations?.list ?? []).flatMap(({ name, expr }) =>
      expr === undefined ? [] : [{ name: `${file} / ${name}`, expr, isRange: true }],
    );
    return [...ofPanels, ...ofAnnotations];
  });
}

/** Grafana's own variables, and those of the dashboards with everything chosen. */
const VARIABLES: Readonly<Record<string, string>> = {
  $__rate_interval: '1m',
  $__range: '1h',
  $project: '.*',
  $compute: '.*',
  $policy: '.*',
  $account: '.*',
  $owner: '.*',
};

/** The query as Grafana would send it. */
export function filledIn(expr: string): string {
  return expr.replace(/\$\w+/g, (variable) => {
    const value = VARIABLES[variable];
    if (value === undefined) throw new Error(`${variable} is no variable of the dashboards: ${expr}`);
    return value;
  });
}
