import { createColors } from 'picocolors';
import { expect, it } from 'vitest';
import { costView } from '../../src/adapters/http/page/cost-view.tsx';
import { Overview } from '../../src/adapters/http/page/overview.tsx';
import { wasteView } from '../../src/adapters/http/page/waste-view.tsx';
import type { MonthChange } from '../../src/cli/forecast/month.ts';
import { summarySections } from '../../src/cli/plan/summary.ts';
import { recommendText } from '../../src/cli/recommend/text.ts';
import type { SavingsReport } from '../../src/cli/savings/report.ts';
import { savingsText } from '../../src/cli/savings/text.ts';
import { costLines } from '../../src/cli/status.ts';
import type { Estimate } from '../../src/domain/estimate.ts';
import type { EvaluatedCompute } from '../../src/domain/evaluate/evaluate.ts';
import { digestOf } from '../../src/domain/notifications/digest.ts';
import type { Finding } from '../../src/domain/recommend/finding.ts';
import type { CostsDocument } from '../../src/ports/cost-documents.ts';
import type { StatusDocument } from '../../src/ports/documents.ts';
import type { WasteDocument } from '../../src/ports/waste.ts';
import { emptyFleet } from '../http/empty-fleet.ts';
import { QUIET, textOf } from '../http/quiet-status.ts';
import { aCompute } from '../support/builders.ts';

/* Policies that give more than there was: what is said of them is not a negative saving. */

const NOW = '2026-11-22T19:00:00Z';
const sums = { cu_hours: 900, usd: 1234.5, unknown_hours: 0, projected_usd: null };
const costs = {
  ...{ at: NOW, from: '2026-11-01T00:00:00Z', to: '2026-12-01T00:00:00Z', known_until: NOW, owners: [], total: sums },
  would_have_saved: {
    ...{ figure: 'replayed', computes: 7, used_cu_hours: 410, cu_hours: { low: -40, mid: -30, high: -20 } },
    usd: { low: -8.88, mid: -6.66, high: -4.44 },
    parts: [
      { part: 'sizes', figure: 'replayed', cu_hours: { low: -40, mid: -33, high: -23 } },
      { part: 'timeouts', figure: 'at_least', cu_hours: { low: 0, mid: 3, high: 3 } },
    ],
  },
} as unknown as CostsDocument;
const status = { ...QUIET, mode: 'observe', at: NOW, costs } as unknown as StatusDocument;

it('the pages say that enforcing would have cost more', async () => {
  const said = '$6.66 ($4.44 to $8.88) more would have been spent by enforcing in the last two weeks';
  const overview = Overview({ status, fleet: emptyFleet(NOW), costs: null, query: { q: '', page: 1 } });
  expect(textOf(overview)).toContain(said);
  const page = textOf(await costView({ status, detail: null, query: { page: 1 }, stale: undefined }));
  expect(page).toContain(said);
  expect(page).toContain('sizes: 23 to 40 CU-hours more, each hour replayed');
  expect(page).toContain('timeouts: 0 to 3 CU-hours, of which');
  const parts = [{ part: 'sizes', figure: 'replayed', cu_hours: { low: -2229.86, mid: 400, high: 2033.98 } }];
  const mixed = { ...status, costs: { ...costs, would_have_saved: { ...costs.would_have_saved, parts } } };
  const of = { status: mixed as unknown as StatusDocument, detail: null, query: { page: 1 }, stale: undefined };
  expect(textOf(await costView(of))).toContain('sizes: 2,230 CU-hours more to 2,034 CU-hours saved, each hour');
});

it('a range from more to saved begins with more, whatever its middle is', async () => {
  const hours = { low: -3815, mid: -25, high: 3765 };
  const saved = { ...costs.would_have_saved, cu_hours: hours, usd: { low: -1660, mid: -717, high: 226 } };
  const parts = [{ part: 'sizes', figure: 'replayed', cu_hours: hours }];
  const mixed = { ...costs, would_have_saved: { ...saved, parts } } as unknown as CostsDocument;
  const page = await costView({
    status: { ...status, costs: mixed },
    detail: null,
    query: { page: 1 },
    stale: undefined,
  });
  expect(textOf(page)).toContain('sizes: 3,815 CU-hours more to 3,765 CU-hours saved, each hour');
  expect(textOf(page)).toContain('$717 ($1,660 more to $226 saved) more would have been spent');
  expect(costLines(mixed).join('\n')).toContain('by sizes 25 more (3815 more to 3765 saved) (replayed)');
});

it('ebb status says so', () => {
  expect(costLines(costs).slice(-2)).toEqual([
    'enforcing would have cost $6.66 ($4.44 to $8.88) more in the last two weeks, for 7 computes with known usage',
    'in CU-hours: 30 (20 to 40) more of 410 used: by sizes 33 (23 to 40) more (replayed), by timeouts 3 (0 to 3) (at least)',
  ]);
});

it('the weekly digest says so', () => {
  const week = { fromMs: Date.parse('2026-11-16T00:00:00Z'), toMs: Date.parse('2026-11-23T00:00:00Z') };
  const nothing = { owner: 'team-api', changes: 0, restarts: 0, computes: 0 };
  expect(digestOf({ ...nothing, wouldHaveSaved: { low: -40, high: 0 } }, week).text).toMatch(
    /; enforcing would have used 0\.0 to 40\.0 CU-hours more in the last two weeks$/,
  );
});

const cost: Estimate = { low: -15, mid: -12, high: -8 };

it('recommendations say what a finding costs', async () => {
  const finding: Finding = {
    ...{ finding: 'window', figure: 'replayed', now: {}, proposed: {}, owner: 'unowned', risk: 'ask' },
    ...{ compute: aCompute(), savesCuHours: cost, savesUsd: cost, evidence: ['a guard'] },
  };
  const lines = recommendText([finding]).split('\n');
  expect(lines[1]).toMatch(/^ *costs \$12\.00 \(\$8\.00–15\.00\) /);
  expect(lines.at(-1)).toMatch(/1 finding, costs \$12\.00 \(\$8\.00–15\.00\) a month$/);
  const total = { figure: 'replayed', change_by: 'people', findings: 1, cu_hours_month: cost, usd_month: cost };
  const found = {
    ...{ findings: [], totals: [total], matched: 0, projects: 1, owners: [], from: NOW, to: NOW, page: 1, pages: 1 },
  } as unknown as WasteDocument;
  const page = textOf(await wasteView({ found, query: { page: 1 } }));
  expect(page).toContain('costs $12.00 ($8.00–15.00) costs 12 (8–15) CU-hours');
});

it('ebb savings says what policies cost, and what the trial saved by withdrawing them', () => {
  const share: Estimate = { low: -0.091, mid: -0.05, high: -0.008 };
  const report = {
    ...{ trial: 'proof', has_begun: true, from: '2026-10-01', to: '2026-11-01', state: 'final', distinguishable: true },
    ...{
      relative: share,
      cu_hours: cost,
      usd: null,
      trial_cost: { cu_hours: { low: -3, mid: -2, high: -1 }, usd: null },
    },
    ...{ units: 9, effective_units: 9, unit: 'project', unit_days: { treated: 9, control: 3 }, unknown_hours: 0 },
    ...{ starts_per_unit_day: { control: null, treated: null, difference: null }, stopped_at: null },
    ...{ compliance: { control: null, treated: null }, periods_left_out: [], left_out: [] },
    owners: [{ owner: 'team-api', units: 9, effective_units: 9, relative: share, cu_hours: cost, usd: cost }],
  } as unknown as SavingsReport;
  const lines = savingsText(report).split('\n');
  expect(lines).toContain('  cost more 5.0 % (0.8 to 9.1 %), 12 CU-hours (8 to 15)');
  expect(lines).toContain('  it saved  2 CU-hours (1 to 3)');
  expect(lines.at(-1)).toMatch(/^team-api +9 +9 +costs 5\.0 % \(0\.8 to 9\.1 %\) +costs 12 +costs \$12\.00$/);
});

it('the table of a plan by team says which team its policies cost something', () => {
  const planned = {
    compute: aCompute(),
    plan: { verdict: 'wait', actions: [], why: [], waiting: [] },
  } as unknown as EvaluatedCompute;
  const month: MonthChange = { computes: 1, cuHours: cost, usd: { saved: cost, old: cost, new: cost } };
  const options = { colors: createColors(false), ownerOf: () => 'team-api', savedOf: () => month };
  expect(summarySections([planned], options)[0]).toMatch(/\nteam-api .* costs 12 +costs \$12\.00$/);
});
