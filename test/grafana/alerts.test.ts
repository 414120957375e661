import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { programPath } from '../support/programs.ts';
import { describeWith } from '../support/requirements.ts';

interface Rule {
  alert: string;
  labels: { severity: string };
  annotations: { summary: string; runbook_url: string; status_url: string };
}

interface RuleTest {
  alert_rule_test: { alertname: string; exp_alerts: unknown[] }[];
}

const RULES_FILE = 'prometheus/rules/ebb.yml';
const TESTS_FILES = ['test/grafana/alerts.test.yml', 'test/grafana/alerts-of-hours.test.yml'];

const rules = (parse(readFileSync(RULES_FILE, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const tests = TESTS_FILES.flatMap((file) => (parse(readFileSync(file, 'utf8')) as { tests: RuleTest[] }).tests);
const names = rules.map(({ alert }) => alert);

describe('the alerts', () => {
  it.each(rules)('$alert says how bad it is, what it is, and where to read on', ({ alert, labels, annotations }) => {
    expect(['critical', 'warning', 'info']).toContain(labels.severity);
    expect(annotations.summary).toMatch(/\.$/);
    expect(annotations.runbook_url).toBe(`{{ $externalLabels.ebb_url }}/runbook#${alert.toLowerCase()}`);
    expect(annotations.status_url).toMatch(/^\{\{ \$externalLabels\.ebb_url \}\}\//);
  });

  it('each have a section in docs/runbook.md, and each section there is of an alert', () => {
    const headings = [...readFileSync('docs/runbook.md', 'utf8').matchAll(/^## (.+)$/gm)].map(([, name]) => name);
    expect(headings.toSorted()).toEqual(names.toSorted());
  });

  it('are each seen silent and seen firing by a test', () => {
    const checks = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
    const seen = (fires: boolean) =>
      new Set(checks.filter(({ exp_alerts }) => exp_alerts.length > 0 === fires).map(({ alertname }) => alertname));
    expect([...seen(true)].toSorted()).toEqual(names.toSorted());
    expect([...seen(false)].toSorted()).toEqual(names.toSorted());
  });
});

describeWith('promtool', 'promtool', () => {
  const promtool = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(programPath('promtool'), args, { encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };

  it('accepts the rules and the configuration that loads them', () => {
    expect(promtool('check', 'rules', RULES_FILE)).toMatchObject({ status: 0 });
    expect(promtool('check', 'config', 'prometheus/prometheus.yml')).toMatchObject({ status: 0 });
  });

  it('is told where people reach the status page, whole', () => {
    const { global } = parse(readFileSync('prometheus/prometheus.yml', 'utf8'));
    expect(new URL(global.external_labels.ebb_url).origin).toBe(global.external_labels.ebb_url);
  });

  it('sees every alert fire when it should and only then', () => {
    expect(promtool('test', 'rules', ...TESTS_FILES)).toEqual({ status: 0, said: expect.stringContaining('SUCCESS') });
  });
});
