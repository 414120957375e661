import { addLine, type BillLine, billOf } from '../../domain/usage/bill.ts';
import { type BillingMonth, billingMonth, priceAt } from '../../domain/usage/month.ts';
import type { CostRead, CostSource } from './read-cost.ts';

export interface CostReport {
  month: BillingMonth;
  by: 'owner' | 'project';
  lines: readonly BillLine[];
  total: BillLine;
  /** The accounts' own figure in CU-seconds, of a month that has ended. */
  ownFigure: number | undefined;
  /** Share by which the total differs from it. */
  difference: number | undefined;
  /** Other metrics of the days of the month; without a price. */
  quantities: Readonly<Record<string, number>>;
}

/** The bill of one month over all accounts. Months of accounts may begin on other days; the first one's is named. */
export function reportCost(
  { sources, prices, ownerOf, nameOf }: CostRead,
  { monthMs, by, nowMs }: { monthMs: number; by: 'owner' | 'project'; nowMs: number },
): CostReport {
  const lines = new Map<string, BillLine>();
  const quantities: Record<string, number> = {};
  const months = sources.map(({ plans }) => billingMonth(monthMs, plans, nowMs));
  for (const [index, source] of sources.entries()) {
    const month = months[index] ?? billingMonth(monthMs, [], nowMs);
    const bill = billOf({
      ...{ series: source.series, fromMs: month.fromMs, toMs: month.untilMs, byProject: by === 'project' },
      lineOf: (unit) => (by === 'owner' ? ownerOf(unit) : nameOf(unit.projectId)),
      priceAt: (startMs) => priceAt(startMs, { plans: source.plans, prices, otherwise: source.plan }),
    });
    for (const line of bill.lines) {
      const known = lines.get(line.name);
      if (known) addLine(known, line);
      else lines.set(line.name, line);
    }
    addQuantities(quantities, source, month);
  }
  const total: BillLine = { name: 'total', cuSeconds: 0, usd: 0, unknownHours: 0 };
  for (const line of lines.values()) addLine(total, line);
  const ownFigure = ownFigureOf(sources, months);
  return {
    month: months[0] ?? billingMonth(monthMs, [], nowMs),
    ...{ by, total, ownFigure, quantities },
    lines: [...lines.values()].sort((a, b) => b.cuSeconds - a.cuSeconds),
    difference: ownFigure === undefined || ownFigure === 0 ? undefined : total.cuSeconds / ownFigure - 1,
  };
}

function ownFigureOf(sources: readonly CostSource[], months: readonly BillingMonth[]): number | undefined {
  const figures = sources.map((source, index) => source.months.get(months[index]?.fromMs ?? Number.NaN));
  if (figures.length === 0 || figures.includes(undefined)) return undefined;
  return figures.reduce<number>((sum, figure) => sum + (figure ?? 0), 0);
}

function addQuantities(sums: Record<string, number>, source: CostSource, { fromMs, untilMs }: BillingMonth): void {
  for (const [startMs, metrics] of source.quantities) {
    if (startMs < fromMs || startMs >= untilMs) continue;
    for (const [name, value] of Object.entries(metrics)) sums[name] = (sums[name] ?? 0) + value;
  }
}
