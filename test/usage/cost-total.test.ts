import { describe, expect, it } from 'vitest';
import { costSummary } from '../../src/app/usage/cost-summary.ts';
import type { MonthCosts } from '../../src/app/usage/month-costs.ts';
import type { CostReport } from '../../src/cli/cost/report.ts';
import { costText } from '../../src/cli/cost.ts';
import { costLines } from '../../src/cli/status.ts';
import { addLine, type BillLine } from '../../src/domain/usage/bill.ts';

/** Each rounds down by itself; together they are a cent more. */
const DOLLARS = [1273.344, 1273.344, 1273.344];
const lines = DOLLARS.map(
  (usd, index): BillLine => ({ name: `team-${index}`, cuSeconds: 36_000, usd, unknownHours: 0 }),
);
const month = { fromMs: 0, toMs: 1, untilMs: 1 };

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
    expect(costLines(summary ?? null)).toContain('  by owner without 2 projects not read yet:');
  });
});
