import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DASHBOARD_FILES } from '../../scripts/render-dashboards.ts';
import { dashboardJson, dashboardQueries, filledIn } from './dashboard-queries.ts';
import { knownSeries } from './known-metrics.ts';
import { namesIn } from './promql-names.ts';

interface RulesFile {
  groups: { rules: { alert: string; expr: string }[] }[];
}

const rules = (parse(readFileSync('prometheus/rules/ebb.yml', 'utf8')) as RulesFile).groups.flatMap(
  (group) => group.rules,
);
const queries = [
  ...dashboardQueries().map(({ name, expr }) => ({ name, expr: filledIn(expr) })),
  ...rules.map(({ alert, expr }) => ({ name: alert, expr })),
];
const known = await knownSeries();

describe('every query of dashboards and alerts', () => {
  it.each(queries)('$name names metrics and labels that ebb has', ({ expr }) => {
    const { selectors, grouping, errors } = namesIn(expr);
    expect(errors).toEqual([]);
    const wrong = selectors.flatMap(({ metric, labels }) => {
      const has = known.get(metric);
      return has === undefined ? [metric] : labels.filter((label) => !has.has(label)).map((one) => `${metric}{${one}}`);
    });
    expect(wrong).toEqual([]);
    const ofAll = new Set(selectors.flatMap(({ metric }) => [...(known.get(metric) ?? [])]));
    expect(grouping.filter((label) => !ofAll.has(label))).toEqual([]);
  });

  it('counts no compute twice where several daemons export it', () => {
    const perCompute = queries.filter(({ expr }) => /\b(sum|count|avg)\b[^(]*\((?!max by)[^)]*ebb_compute_/.test(expr));
    expect(perCompute).toEqual([]);
  });
});

describe('the dashboards', () => {
  it.each(DASHBOARD_FILES)('%s lets choose from labels that ebb has', (file) => {
    const asked = dashboardJson(file).templating.list.flatMap(({ definition }) => definition ?? []);
    const wrong = asked.filter((text) => {
      const [, metric = '', label = ''] = /^label_values\((\w+)(?:\{[^}]*\})?, (\w+)\)$/.exec(text) ?? [];
      return !known.get(metric)?.has(label);
    });
    expect(wrong).toEqual([]);
  });

  it.each(DASHBOARD_FILES)('%s can be filtered by account and owner, and has a query for each', (file) => {
    const names = dashboardJson(file).templating.list.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['account', 'owner']));
    const asked = dashboardQueries().filter(({ name }) => name.startsWith(file));
    expect(asked.some(({ expr }) => expr.includes('account=~"$account"'))).toBe(true);
    expect(asked.some(({ expr }) => expr.includes('owner=~"$owner"'))).toBe(true);
  });

  it('filter all that has an owner or account, itself or by its compute or policy', () => {
    const unfiltered = dashboardQueries().filter(({ expr }) => {
      const { selectors } = namesIn(filledIn(expr));
      const filters = (label: string) => selectors.some(({ labels }) => labels.includes(label));
      const has = (label: string) => selectors.some(({ metric }) => known.get(metric)?.has(label));
      return (
        ['account', 'owner'].some((label) => has(label) && !filters(label)) ||
        ((has('compute') || has('policy')) && !filters('owner'))
      );
    });
    expect(unfiltered).toEqual([]);
  });

  it('say why panels of connections are empty where nobody counts them', () => {
    const panels = DASHBOARD_FILES.flatMap((file) => dashboardJson(file).panels);
    const ofConnections = panels.filter(({ targets = [] }) =>
      targets.some(({ expr }) => /ebb_(max_)?connection/.test(expr)),
    );
    expect(ofConnections.length).toBeGreaterThan(4);
    const silent = ofConnections.filter(
      ({ fieldConfig }) => !/source configured/.test(`${fieldConfig?.defaults.noValue}`),
    );
    expect(silent.map(({ title }) => title)).toEqual([]);
  });

  it.each(['ebb-fleet.json', 'ebb-cost.json'])('%s begins with what ebb did', (file) => {
    const [row, first] = dashboardJson(file).panels;
    expect([row?.type, row?.title, (first?.targets ?? []).length > 0]).toEqual(['row', 'What ebb did for you', true]);
  });

  it.each(DASHBOARD_FILES)('%s describes every panel, and calls no two alike', (file) => {
    const panels = dashboardJson(file).panels.filter(({ targets }) => targets !== undefined);
    expect(panels.filter(({ description }) => !description)).toEqual([]);
    const titles = panels.map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
  });
});
