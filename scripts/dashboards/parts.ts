/** The few kinds of panels, variables and queries that the dashboards are made of. */

import * as common from '@grafana/grafana-foundation-sdk/common';
import { type DataSourceRef, LegendDisplayMode, LineInterpolation } from '@grafana/grafana-foundation-sdk/common';
import {
  DashboardBuilder as Dashboard,
  type DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  MappingType,
  QueryVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as StateTimelinePanel } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TablePanel } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as TimeSeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries';

const DATASOURCE: DataSourceRef = { type: 'prometheus', uid: '$datasource' };

/** What every kind of panel says of itself. `width` is in columns of 24, `height` in rows of 30 pixels. */
interface PanelOptions {
  title: string;
  description: string;
  queries: readonly Query[];
  width: number;
  height?: number;
  unit?: string;
  /** Shown instead of "No data" where there is no series: why. */
  ifEmpty?: string;
}

/** PromQL, and what its series are called; `{{label}}` stands for the value of a label. */
export interface Query {
  expr: string;
  legend?: string;
}

export type Panel = Parameters<DashboardBuilder['withPanel']>[0];

/** Lines over time. */
export function chart(options: PanelOptions & { stacked?: boolean; stepped?: boolean }): Panel {
  const { stacked = false, stepped = false } = options;
  const panel = described(new TimeSeriesPanel(), options, 8)
    .min(0)
    .lineInterpolation(stepped ? LineInterpolation.StepAfter : LineInterpolation.Linear)
    .fillOpacity(stacked ? 30 : 0)
    .legend(new common.VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).showLegend(true))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi));
  if (stacked) panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal));
  for (const [index, query] of options.queries.entries()) panel.withTarget(rangeOf(query, index));
  return panel;
}

/** Numbers as they are at the end of the time range. `names` gives values a word. */
export function numbers(options: PanelOptions & { names?: Readonly<Record<string, string>> }): Panel {
  const hasNames = options.queries.some(({ legend }) => legend !== undefined);
  const panel = described(new StatPanel(), options, 4)
    .graphMode(common.BigValueGraphMode.None)
    .colorMode(common.BigValueColorMode.None)
    .textMode(hasNames ? common.BigValueTextMode.ValueAndName : common.BigValueTextMode.Value)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']));
  if (options.names !== undefined) panel.mappings([valueNames(options.names)]);
  for (const [index, query] of options.queries.entries()) panel.withTarget(rangeOf(query, index).instant());
  return panel;
}

/**
 * A row for each series of an instant query: its labels and its value, which is called `value`. From `colouredFrom` on values stand
 * out, and the highest come first.
 */
export function list(options: PanelOptions & { value: string; colouredFrom?: number }): Panel {
  const panel = described(new TablePanel(), options, 8).withTransformation({
    id: 'organize',
    options: { excludeByName: { Time: true }, renameByName: { Value: options.value } },
  });
  if (options.colouredFrom !== undefined) {
    const steps = [
      { value: null, color: 'text' },
      { value: options.colouredFrom, color: 'orange' },
    ];
    panel.thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps));
    panel.cellOptions({ type: common.TableCellDisplayMode.ColorText });
    panel.sortBy([new common.TableSortByFieldStateBuilder().displayName(options.value).desc(true)]);
  }
  for (const [index, query] of options.queries.entries()) {
    panel.withTarget(rangeOf(query, index).instant().format(PromQueryFormat.Table));
  }
  return panel;
}

/** A band for each series, coloured by value. */
export function timeline(options: PanelOptions & { names: Readonly<Record<string, string>> }): Panel {
  const panel = described(new StateTimelinePanel(), options, 10).mappings([valueNames(options.names)]);
  for (const [index, query] of options.queries.entries()) panel.withTarget(rangeOf(query, index));
  return panel;
}

interface Describable {
  title(title: string): this;
  description(description: string): this;
  datasource(datasource: DataSourceRef): this;
  span(width: number): this;
  height(height: number): this;
  unit(unit: string): this;
  noValue(text: string): this;
}

function described<P extends Describable>(panel: P, options: PanelOptions, usualHeight: number): P {
  const { title, description, width, height = usualHeight, unit = 'none' } = options;
  if (options.ifEmpty !== undefined) panel.noValue(options.ifEmpty);
  return panel.title(title).description(description).datasource(DATASOURCE).span(width).height(height).unit(unit);
}

function rangeOf({ expr, legend = '__auto' }: Query, index: number): DataqueryBuilder {
  const refId = String.fromCharCode('A'.charCodeAt(0) + index);
  return new DataqueryBuilder().refId(refId).datasource(DATASOURCE).expr(expr).legendFormat(legend);
}

const COLOURS = ['text', 'green', 'blue', 'orange'];

function valueNames(names: Readonly<Record<string, string>>): ValueMapping {
  const results = Object.entries(names).map(([value, text], index) => [
    value,
    { text, index, color: COLOURS[index % COLOURS.length] ?? 'text' },
  ]);
  return { type: MappingType.ValueToText, options: Object.fromEntries(results) };
}

/** A dashboard that lets choose the data source, and leads to the other ones. */
export function startDashboard(options: { uid: string; title: string; description: string }): DashboardBuilder {
  return new Dashboard(options.title)
    .uid(options.uid)
    .description(options.description)
    .tags(['ebb'])
    .timezone('browser')
    .time({ from: 'now-24h', to: 'now' })
    .refresh('1m')
    .tooltip(DashboardCursorSync.Crosshair)
    .link(
      new DashboardLinkBuilder('ebb').type(DashboardLinkType.Dashboards).tags(['ebb']).includeVars(true).keepTime(true),
    )
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'));
}

export function addRow(dashboard: DashboardBuilder, title: string, panels: readonly Panel[]): void {
  dashboard.withRow(new RowBuilder(title));
  for (const panel of panels) dashboard.withPanel(panel);
}

/** Why a panel about connections is empty. */
export const NO_SOURCE =
  'No source configured: connections are counted where a policy asks for them (docs/connections.md).';

/** Of dropped connections there is no series before the first. */
export const NONE_DROPPED = 'None dropped, or no source configured: docs/connections.md';

/** A choice among the values of a label. Several at once unless `single`. */
export function labelVariable(options: {
  name: string;
  label: string;
  metric: string;
  labelName: string;
  single?: boolean;
}): QueryVariableBuilder {
  const { name, label, metric, labelName, single = false } = options;
  const query = `label_values(${metric}, ${labelName})`;
  const variable = new QueryVariableBuilder(name)
    .label(label)
    .datasource(DATASOURCE)
    .query({ query, refId: name })
    .definition(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc);
  return single ? variable : variable.multi(true).includeAll(true).allValue('.*');
}

export const ACCOUNT = { name: 'account', label: 'Account', metric: 'ebb_compute_info', labelName: 'account' };
export const OWNER = {
  name: 'owner',
  label: 'Team or owner',
  metric: 'ebb_compute_info{account=~"$account"}',
  labelName: 'owner',
};

const CHOSEN_INFO = 'ebb_compute_info{account=~"$account", owner=~"$owner"}';

export const PROJECT = { name: 'project', label: 'Project', metric: CHOSEN_INFO, labelName: 'project' };
export const COMPUTE = {
  name: 'compute',
  label: 'Compute',
  metric: CHOSEN_INFO.replace('}', ', project=~"$project"}'),
  labelName: 'compute',
};
export const POLICY = {
  name: 'policy',
  label: 'Policy',
  metric: 'ebb_policy_info{owner=~"$owner"}',
  labelName: 'policy',
};

/** Of series with the labels `project` and `compute`, those of the chosen accounts and owners. */
export function ofChosenOwners(expr: string): string {
  return `(${expr} and on (project, compute) ${CHOSEN_INFO})`;
}

/** Of series with the label `policy`, those of the policies of the chosen owners. */
export function ofOwnedPolicies(expr: string): string {
  return `(${expr} and on (policy) ebb_policy_info{owner=~"$owner"})`;
}

/**
 * A per-compute series, once for each compute: for a moment, when one daemon takes over from another, two may export it.
 * `matchers` are further ones, such as `state="active"`.
 */
export function ofComputes(metric: string, matchers = ''): string {
  const all = ['project=~"$project"', 'compute=~"$compute"', ...(matchers === '' ? [] : [matchers])];
  return `max by (project, compute) ${ofChosenOwners(`${metric}{${all.join(', ')}}`)}`;
}

/** Median and 95th percentile of a histogram, by labels. */
export function quantiles(metric: string, by = ''): Query[] {
  const labels = by === '' ? 'le' : `le, ${by}`;
  const name = by === '' ? '' : `{{${by}}} `;
  return [
    ['0.5', 'median'],
    ['0.95', '95 %'],
  ].map(([quantile, word]) => ({
    expr: `histogram_quantile(${quantile}, sum by (${labels}) (rate(${metric}_bucket[$__rate_interval])))`,
    legend: `${name}${word}`,
  }));
}
