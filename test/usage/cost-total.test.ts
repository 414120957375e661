import { describe, expect, it } from 'vitest';
import { costDetail } from '../../src/app/usage/cost-detail.ts';
import { costSummary } from '../../src/app/usage/cost-summary.ts';
import type { MonthCosts } from '../../src/app/usage/month-costs.ts';
import type { CostRead } from '../../src/cli/cost/read-cost.ts';
import { type CostReport, reportCost } from '../../src/cli/cost/report.ts';
import { costJson, costText } from '../../src/cli/cost.ts';
import { costLines } from '../../src/cli/status.ts';
import { DAY_MS } from '../../src/domain/time/units.ts';
import { addLine, type BillLine } from '../../src/domain/usage/bill.ts';

/** Each rounds down by itself; together they are a cent more. */
const DOLLARS = [1273.344, 1273.344, 1273.344];
const lines = DOLLARS.map(
  (usd, index): BillLine => ({ name: `team-${index}`, cuSeconds: 36_000, usd, unknownHours: 0 }),
);
const month = { fromMs: 0, toMs: 1, untilMs: 1 };

const PRICE = 0.222;
const READ: CostRead = {
  sources: [
    {
      ...{ account: 'main', plans: [], months: new Map(), quantities: new Map(), plan: 'scale' },
      series: DOLLARS.map((usd, index) => ({
        ...{ projectId: `p-${index}`, branchId: null },
        buckets: [{ startMs: DAY_MS, seconds: 3600, cuSeconds: (usd / PRICE) * 3600 }],
      })),
    },
  ] as unknown as CostRead['sources'],
  prices: { scale: PRICE } as CostRead['prices'],
  ...{ ownerOf: ({ projectId }) => projectId, nameOf: String, isWanted: undefined, notes: [] },
};

/** The hours and the dollars of each line with dollars. */
function columnsOf(text: string): string[][] {
  const rows = text.split('\n').map((line) => line.trim().split(/ +/));
  return rows.filter(([, , usd]) => usd?.startsWith('$')).map((row) => row.slice(1, 3));
}

describe('what a month has cost', () => {
  it('has one total, in one form, in `ebb cost` and in what status and page show', () => {
    const costs = [
      { account: 'main', month, knownUntilMs: 1, lines: [], owners: lines, total: {} },
    ] as unknown as MonthCosts[];
    expect(costSummary(costs, 1)?.total).toMatchObject({ usd: 3820.03, cu_hours: 30 });
    const total: BillLine = { name: 'total', cuSeconds: 0, usd: 0, unknownHours: 0 };
    for (const line of lines) addLine(total, line);
    const report = { month, lines, total, by: 'owner', quantities: {} } as unknown as CostReport;
    expect(costText(report)).toContain('$1,273.34');
    expect(costText(report)).toContain('$3,820.03');
  });

  it('is the sum of its lines, in every form: the one with the largest remainder has the cent that rounding leaves', () => {
    const report = reportCost(READ, { monthMs: DAY_MS, by: 'owner', nowMs: 3 * DAY_MS });
    const json = JSON.parse(costJson(report));
    expect(json.lines.map(({ usd }: { usd: number }) => usd)).toEqual([1273.35, 1273.34, 1273.34]);
    expect(json.lines.map(({ cu_hours }: { cu_hours: number }) => cu_hours)).toEqual([
      5_735.7838, 5_735.7838, 5_735.7838,
    ]);
    expect(json.total).toMatchObject({ usd: 3820.03, cu_hours: 17_207.3514 });
    expect(columnsOf(costText(report))).toEqual([
      ['5735.8', '$1,273.35'],
      ['5735.8', '$1,273.34'],
      ['5735.8', '$1,273.34'],
      ['17207.4', '$3,820.03'],
    ]);
    const costs = { account: 'main', month, knownUntilMs: 1, lines, days: new Map(), owners: lines, total: {} };
    const all = [costs] as unknown as MonthCosts[];
    expect(costSummary(all, 1)?.owners.map(({ usd }) => usd)).toEqual([1273.35, 1273.34, 1273.34]);
    expect(costDetail(all, String)?.projects.map(({ usd }) => usd)).toEqual([1273.35, 1273.34, 1273.34]);
  });

  it('has a line for who spent a cent, however few hours that were, and none for nothing', () => {
    const unit = { cuSeconds: 0, usd: 0, unknownHours: 0 };
    const few = { ...unit, name: 'few', cuSeconds: 170, usd: 0.01 };
    const report = { month, lines: [few, { ...unit, name: 'none' }], total: few, by: 'owner', quantities: {} };
    expect(columnsOf(costText(report as unknown as CostReport))).toEqual([
      ['0.0', '$0.01'],
      ['0.0', '$0.01'],
    ]);
  });

  it('has no total without the price of a part', () => {
    const owners = [...lines, { name: 'team-new', cuSeconds: 0, usd: undefined, unknownHours: 0 }];
    const costs = [
      { account: 'main', month, knownUntilMs: 1, lines: [], owners, total: {} },
    ] as unknown as MonthCosts[];
    expect(costSummary(costs, 1)?.total.usd).toBeNull();
  });

  it('says of how many projects the owner is not known', () => {
    const unread = ['one', 'two', 'two'].map((projectId) => ({ ...lines[0], name: 'not read yet', projectId }));
    const costs = { account: 'main', month, knownUntilMs: 1, lines: unread, owners: lines, total: {} };
    const summary = costSummary([costs] as unknown as MonthCosts[], 1);
    expect(summary?.unread_projects).toBe(2);
    expect(costLines(summary ?? null)).toContain('  by owner, without 2 projects not read yet:');
  });
});
