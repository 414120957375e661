import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { reportJson, reportMarkdown, reportText, type ShownReport } from '../../src/cli/report/text.ts';
import { aCompute } from '../support/builders.ts';

const DAY_MS = 86_400_000;
const SAVES = { low: 1, mid: 2, high: 3 };

/** The report of one project, whose compute could sleep earlier. */
function aReport(more: Partial<ShownReport> = {}): ShownReport {
  const compute = aCompute();
  const { projectId } = compute;
  const period = { fromMs: 0, toMs: 30 * DAY_MS, cuHours: 10, plan: 'launch' };
  const projected = { low: 20, mid: 30, high: 40 };
  const change = { now: { suspend_timeout_seconds: 3600 }, proposed: { suspend_timeout_seconds: 300 } };
  const setting = { compute, finding: 'timeout', evidence: [], policy: {}, savesCuHours: SAVES, ...change };
  return {
    atMs: 10 * DAY_MS,
    missing: [],
    projects: [{ projectId, name: 'shop', period, usd: 1, projected, projectedUsd: { low: 2, mid: 3, high: 4 } }],
    computes: [{ compute, setting, neverSlept: false, past: {} }],
    ...more,
  } as unknown as ShownReport;
}

it('ends with the commands of the README, one a line', async () => {
  const lines = reportText(aReport()).split('\n');
  const commands = lines.slice(lines.indexOf('As policies, which ebb then keeps:') + 1);
  const readme = (await readFile('README.md', 'utf8')).split('\n').map((line) => line.split(/ (?:#|&&)/)[0]?.trim());
  expect(commands.map((line) => line.split('#')[0]?.trim()).filter((line) => !readme.includes(line))).toEqual([]);
  expect(commands.length).toBeGreaterThan(3);
});

it('says in markdown what would save most, and how to get it', () => {
  const markdown = reportMarkdown(aReport());
  expect(markdown).toMatch(/\nMost would be saved by:\n\n1\. `[^`]+`: suspend_after 1h → 5m, saves .* a month\n/);
  expect(markdown).toMatch(/\nAs policies, which ebb then keeps:\n\n```sh\nebb init [^`]+\nebb run .*\n```$/);
  expect(reportMarkdown(aReport({ computes: [] }))).toMatch(/\nNo setting would save anything/);
});

it('has the dollars at the end of the period and totals as JSON', () => {
  const { projects, totals } = reportJson(aReport());
  expect(projects[0]?.projected_usd).toEqual({ low: 2, mid: 3, high: 4 });
  expect(totals).toEqual({ projects: 1, run_out: 0, used_cu_hours: 10, used_usd: 1, projected_usd: 3 });
  const free = aReport().projects.map(({ usd, projectedUsd, ...project }) => project);
  const { projects: unpaid, totals: ofFree } = reportJson(aReport({ projects: free }));
  expect([unpaid[0]?.projected_usd, ofFree.used_usd, ofFree.projected_usd]).toEqual([null, null, null]);
});

it('does not say of what could not be read that no setting would help', () => {
  const nothing = 'No setting would save anything that the last four weeks show';
  const unread: ShownReport['unread'] = [{ projectId: 'p', name: 'shop', parts: ['operations'] }];
  for (const shown of [reportText, reportMarkdown]) {
    expect(shown(aReport({ computes: [] }))).toContain(`${nothing}.`);
    expect(shown(aReport({ computes: [], unread }))).toContain(`${nothing}, as far as they could be read.`);
  }
});

it('says of dollars until when they are known, since ebb cost and status know less', () => {
  const said =
    'As of 1970-01-11 00:00 UTC. Usage is until then; ebb cost and ebb status lack the last two to three hours.';
  expect(reportText(aReport())).toContain(said);
  const free = aReport().projects.map(({ usd, ...project }) => project);
  expect(reportText(aReport({ projects: free }))).not.toContain('ebb cost');
});
