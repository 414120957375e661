import { toHundredths } from '../../domain/sum.ts';
import { addLine, type BillLine, billOf, inCents } from '../../domain/usage/bill.ts';
import { type BillingMonth, billingMonth, priceAt } from '../../domain/usage/month.ts';
import type { UsageSeries, UsageUnit } from '../../domain/usage/usage.ts';
import type { CostRead, CostSource } from './read-cost.ts';

export interface CostReport {
  month: BillingMonth;
  by: 'owner' | 'project';
  /** In whole cents, which sum to the total. */
  lines: readonly BillLine[];
  total: BillLine;
  /** The vendor's own figure for the accounts, in CU-seconds. Undefined until the month has ended, and if only some units are wanted. */
  ownFigure: number | undefined;
  /** (total − ownFigure) / ownFigure. */
  difference: number | undefined;
  /** Other metrics of the month, which have no price. */
  quantities: Readonly<Record<string, number>>;
}

/** The line of unwanted units; no owner or project has this name. */
const OTHERS = ' others';

/** The bill of one month over all accounts. Their billing months may begin on different days; the report shows that of the first account. */
export function reportCost(
  read: CostRead,
  { monthMs, by, nowMs }: { monthMs: number; by: 'owner' | 'project'; nowMs: number },
): CostReport {
  const { sources, isWanted } = read;
  const lines = new Map<string, BillLine>();
  const quantities: Record<string, number> = {};
  const months = sources.map(({ plans }) => billingMonth(monthMs, plans, nowMs));
  for (const [index, source] of sources.entries()) {
    const month = months[index] ?? billingMonth(monthMs, [], nowMs);
    for (const line of linesOf(source, month, { ...read, by })) {
      const known = lines.get(line.name);
      if (known) addLine(known, line);
      else lines.set(line.name, line);
    }
    if (!isWanted) addQuantities(quantities, source, month);
  }
  const total: BillLine = { name: 'total', cuSeconds: 0, usd: 0, unknownHours: 0 };
  for (const line of lines.values()) addLine(total, line);
  const sorted = [...lines.values()].sort((a, b) => b.cuSeconds - a.cuSeconds);
  const cents = inCents(sorted);
  const ownFigure = isWanted ? undefined : ownFigureOf(sources, months);
  return {
    month: months[0] ?? billingMonth(monthMs, [], nowMs),
    by,
    total: { ...total, usd: total.usd === undefined ? undefined : toHundredths(total.usd) },
    ownFigure,
    quantities,
    lines: sorted.map((line, index) => ({ ...line, usd: cents[index] })),
    difference: ownFigure === undefined || ownFigure === 0 ? undefined : total.cuSeconds / ownFigure - 1,
  };
}

function linesOf(
  { series, plans, plan }: CostSource,
  { fromMs, untilMs: toMs }: BillingMonth,
  { by, isWanted, ownerOf, nameOf, prices }: CostRead & { by: 'owner' | 'project' },
): BillLine[] {
  const lineOf = (unit: UsageUnit) => (by === 'owner' ? ownerOf(unit) : nameOf(unit.projectId));
  const { lines } = billOf({
    fromMs,
    toMs,
    byProject: by === 'project' && !isWanted,
    series: isWanted ? ofWantedProjects(series, isWanted) : series,
    lineOf: (unit) => (isWanted?.(unit) === false ? OTHERS : lineOf(unit)),
    priceAt: (startMs) => priceAt(startMs, { plans, prices, otherwise: plan }),
  });
  return lines.filter(({ name }) => name !== OTHERS);
}

/** All series of projects with a wanted unit, since the usage outside branches is the project's usage minus that of its branches. */
function ofWantedProjects(series: readonly UsageSeries[], isWanted: (unit: UsageUnit) => boolean): UsageSeries[] {
  const projectIds = new Set(series.filter(isWanted).map(({ projectId }) => projectId));
  return series.filter(({ projectId }) => projectIds.has(projectId));
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
