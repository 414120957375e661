/** Alerts over series of minutes, by the Prometheus rule engine of promtool. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect } from 'vitest';
import { programPath } from '../support/programs.ts';

/** Values of each series by minute; without one, the series has none then. */
export type Series = Record<string, number[]>;

export interface Check {
  expr: string;
  atMinute: number;
  value?: number;
}

interface RulesTest {
  name: string;
  series: Readonly<Record<string, readonly (number | undefined)[]>>;
  checks: readonly Check[];
  /** Between evaluations of the rules; a minute if absent. */
  everyText?: string;
}

/** Holds that each expression has its value then; without one, that it has no result. */
export function checkRules(test: RulesTest): void {
  expect(promtool(test)).toContain('SUCCESS');
}

/** The minute at which each alert first fired, with its severity. */
export function firstFired(
  series: RulesTest['series'],
  minutes: number,
): Map<string, { severity: string; atMinute: number }> {
  const expr = `min by (alertname, severity) (min_over_time((timestamp(ALERTS{alertstate="firing"}))[${minutes}m:1m]))`;
  const text = promtool({ name: 'first', series, checks: [{ expr, atMinute: minutes - 1, value: -1 }] });
  const found = [...text.matchAll(/\{alertname="(\w+)", severity="(\w+)"\} ([\d.eE+]+)/g)];
  return new Map(
    found.map(([, name = '', severity = '', seconds]) => [name, { severity, atMinute: Number(seconds) / 60 }]),
  );
}

/** The minutes in which an alert was firing. */
export function minutesFiring(series: RulesTest['series'], alert: string, minutes: number): number[] {
  const expr = `count(ALERTS{alertstate="firing", alertname="${alert}"})`;
  const checks = Array.from({ length: minutes }, (_, atMinute) => ({ expr, atMinute }));
  const text = promtool({ name: 'minutes', series, checks });
  return [...text.matchAll(/time: (\w+),/g)].map(([, time = '']) => minutesOf(time));
}

const MINUTES: Readonly<Record<string, number>> = { w: 10_080, d: 1_440, h: 60, m: 1 };

/** Of a duration as Prometheus prints it: 1d3h4m. */
function minutesOf(duration: string): number {
  return [...duration.matchAll(/(\d+)([a-z])/g)].reduce(
    (sum, [, number, unit = '']) => sum + Number(number) * (MINUTES[unit] ?? 0),
    0,
  );
}

function promtool({ name, series, checks, everyText = '1m' }: RulesTest): string {
  const test = {
    ...{ name, interval: '1m', external_labels: { ebb_url: 'http://ebb.test' } },
    input_series: Object.entries(series).map(([one, values]) => ({
      series: one,
      values: Array.from(values, (value) => value ?? '_').join(' '),
    })),
    promql_expr_test: checks.map(({ expr, atMinute, value }) => ({
      ...{ expr, eval_time: `${atMinute}m` },
      exp_samples: value === undefined ? [] : [{ labels: '{}', value }],
    })),
  };
  const folder = mkdtempSync(join(tmpdir(), 'ebb-alerts-'));
  try {
    const file = join(folder, 'tests.yml');
    const rules = resolve('prometheus/rules/ebb.yml');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ rule_files: [rules], evaluation_interval: everyText, tests: [test] }));
    const { stdout, stderr } = spawnSync(programPath('promtool'), ['test', 'rules', file], { encoding: 'utf8' });
    return `${stdout}${stderr}`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
