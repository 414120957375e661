/** Measured usage by day and project, and of one branch, as the pages draw it. */
import { sum, toHundredths } from '../../domain/sum.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import { type BillLine, dailyLines, inCents } from '../../domain/usage/bill.ts';
import { billingMonth } from '../../domain/usage/month.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import type { UsageUnit } from '../../domain/usage/usage.ts';
import type { BranchCostDocument, CostDetailDocument, DailyDocument } from '../../ports/cost-documents.ts';
import type { CostRules } from '../../ports/rules.ts';
import { sharedDocument } from '../shared-documents.ts';
import { firstBucketMs, lastKnownMs, type MonthCosts, pricesOf } from './month-costs.ts';
import { type StoredUsage, usageReader } from './usage-account.ts';

export const {
  read: readDetail,
  keep: keepDetail,
  fill: fillDetail,
} = sharedDocument<CostDetailDocument>('costs', 'detail', 1);

/** At least this many days before today are shown, so that a young month can be compared. */
const DAYS_SHOWN = 28;
/** The document must stay small: owners with less usage are summed under {@link OTHERS}, and projects with less usage are only counted. */
const MAX_OWNERS = 50;
const MAX_PROJECTS = 1_000;
const OTHERS = 'others';

/** The days and the projects of all organizations; undefined if no usage is known. */
export function costDetail(
  all: readonly MonthCosts[],
  nameOf: (projectId: string) => string,
): CostDetailDocument | undefined {
  const [first] = all;
  if (first === undefined) return undefined;
  const { fromMs, untilMs } = first.month;
  const todayMs = untilMs - (untilMs % DAY_MS);
  const span = { fromMs: Math.min(fromMs - (fromMs % DAY_MS), todayMs - DAYS_SHOWN * DAY_MS), toMs: todayMs };
  const byOwner = new Map<string, BillLine[]>();
  for (const [owner, days] of all.flatMap(({ days }) => [...days])) {
    const ownDays = daysOf(days, span);
    byOwner.set(owner, byOwner.get(owner)?.map((line, index) => plus(line, ownDays[index])) ?? ownDays);
  }
  const usedIn = (days: readonly BillLine[]) => sum(days.map(({ cuSeconds }) => cuSeconds));
  const owners = [...byOwner].filter(([, days]) => usedIn(days) > 0).sort(([, a], [, b]) => usedIn(b) - usedIn(a));
  const rest = owners.splice(MAX_OWNERS).map(([, days]) => days);
  if (rest.length > 0)
    owners.push([OTHERS, rest.reduce((total, days) => total.map((line, day) => plus(line, days[day])))]);
  const lines = all.flatMap((one) => one.lines).sort((a, b) => b.cuSeconds - a.cuSeconds);
  const cents = inCents(lines);
  return {
    first_day: isoInstant(span.fromMs).slice(0, 10),
    owners: owners.map(([owner, days]) => ({ owner, ...dailyDocument(days) })),
    projects: lines.slice(0, MAX_PROJECTS).map((line, index) => ({
      project_id: line.projectId,
      project_name: nameOf(line.projectId),
      owner: line.name,
      ...sumDocument(line),
      usd: cents[index] ?? null,
    })),
    projects_left_out: Math.max(0, lines.length - MAX_PROJECTS),
  };
}

/** This month's usage of a branch; null where none is stored. */
export async function branchCost(options: {
  store: StoredUsage;
  account: string;
  organization: string;
  unit: UsageUnit;
  costs: CostRules;
  nowMs: number;
}): Promise<BranchCostDocument | null> {
  const { store, account, organization, unit, costs, nowMs } = options;
  const stored = usageReader(store, { account, organization });
  const metadata = await stored.metadata();
  const series = metadata ? (await stored.read([unit])).map(seriesOf) : [];
  if (metadata === undefined || lastKnownMs(series) === 0) return null;
  const { fromMs, untilMs } = billingMonth(nowMs, metadata.plans, nowMs);
  const span = { fromMs: Math.max(fromMs, Math.min(untilMs, firstBucketMs(series))), toMs: untilMs };
  const priceAt = pricesOf(metadata, costs, account);
  const days = new Map<number, BillLine>();
  for (const { dayMs, line } of dailyLines({ series, ...span, priceAt, byProject: false, lineOf: () => '' })) {
    days.set(dayMs, plus(line, days.get(dayMs)));
  }
  const listed = daysOf(days, { fromMs: fromMs - (fromMs % DAY_MS), toMs: untilMs });
  return {
    first_day: isoInstant(fromMs).slice(0, 10),
    known_until: isoInstant(lastKnownMs(series)),
    ...sumDocument(listed.reduce(plus, NOTHING)),
    days: dailyDocument(listed),
  };
}

const NOTHING: BillLine = { name: '', cuSeconds: 0, usd: 0, unknownHours: 0 };

/** Returns one line for each day of a span, which must begin at midnight (UTC). */
function daysOf(days: ReadonlyMap<number, BillLine>, span: { fromMs: number; toMs: number }): BillLine[] {
  const count = Math.ceil((span.toMs - span.fromMs) / DAY_MS);
  return Array.from({ length: count }, (_, index) => days.get(span.fromMs + index * DAY_MS) ?? NOTHING);
}

function plus(one: BillLine, other: BillLine = NOTHING): BillLine {
  return {
    name: one.name,
    cuSeconds: one.cuSeconds + other.cuSeconds,
    usd: one.usd === undefined || other.usd === undefined ? undefined : one.usd + other.usd,
    unknownHours: one.unknownHours + other.unknownHours,
  };
}

function sumDocument({ cuSeconds, usd, unknownHours }: BillLine) {
  return {
    cu_hours: toHundredths(cuSeconds / 3600),
    usd: usd === undefined ? null : toHundredths(usd),
    unknown_hours: toHundredths(unknownHours),
  };
}

function dailyDocument(days: readonly BillLine[]): DailyDocument {
  const dollars = days.flatMap(({ usd }) => (usd === undefined ? [] : [toHundredths(usd)]));
  return {
    cu_hours: days.map(({ cuSeconds }) => toHundredths(cuSeconds / 3600)),
    usd: dollars.length < days.length ? null : dollars,
  };
}
