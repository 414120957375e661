import { chunksOf } from '../../common/chunks.ts';
import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { NOT_READ } from '../../domain/policy/owners.ts';
import { sum } from '../../domain/sum.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { ANOMALY_PAST_DAYS, anomalyOf, type SpendAnomaly } from '../../domain/usage/anomaly.ts';
import { addLine, type BillLine, billOf, dailyLines, expectedInUnknown } from '../../domain/usage/bill.ts';
import { type BillingMonth, billingMonth, priceAt } from '../../domain/usage/month.ts';
import {
  type NotProjected,
  PAST_DAYS,
  type Projection,
  projectMonth,
  shownProjection,
} from '../../domain/usage/projection.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import type { UsageSeries, UsageUnit } from '../../domain/usage/usage.ts';
import type { CostRules } from '../../ports/rules.ts';
import { type Counterfactual, counterfactualOf } from './counterfactual.ts';
import type { UsageMetadata, UsageReader } from './usage-account.ts';

/** The known costs of an organization in this billing month. */
export interface MonthCosts {
  account: string;
  organization: string;
  month: BillingMonth;
  /** The end of the last hour with known usage, milliseconds since the epoch. */
  knownUntilMs: number;
  /** By project and owner. */
  lines: (BillLine & { projectId: string })[];
  /** The last {@link ANOMALY_PAST_DAYS} days before today, by owner and start; days without usage are missing. */
  days: ReadonlyMap<string, ReadonlyMap<number, BillLine>>;
  /** Most CU-seconds first. */
  owners: OwnerCosts[];
  /** Projected from the daily sums over all owners, because the usage of owners is correlated. */
  total: ProjectedUsd;
  /** The saving that enforcing would have made, by owner; absent where ebb enforces. */
  counterfactual?: Counterfactual[];
}

/** US dollars of the whole month, or why they are not shown; neither if a price is unknown. */
export interface ProjectedUsd {
  projectedUsd?: Projection;
  notProjected?: NotProjected;
}

/** An owner's costs this month; `name` is the owner. */
export interface OwnerCosts extends BillLine, ProjectedUsd {
  /** CU-seconds of the whole month; absent if too little is known. */
  projectedCuSeconds?: Projection;
  /** Yesterday, in CU-seconds, if it used far more than is usual for that weekday. */
  anomaly?: SpendAnomaly;
}

const PROJECTS_AT_ONCE = 100;

/** The smallest excess over the usual use of a day that counts as an anomaly. */
const LEAST_ANOMALY_CU_SECONDS = 3600;

/** Adds up the stored usage of this month; undefined before the first reading. */
export async function monthCosts(options: {
  stored: UsageReader;
  account: string;
  organization: string;
  nowMs: number;
  costs: CostRules;
  ownerOf: (unit: UsageUnit) => string;
  /** Given if ebb only observes; then the counterfactual is computed. */
  observed?: {
    computes: readonly Compute[];
    policies: CompiledPolicies;
    historyOf: (compute: Compute) => AwakeHistory | undefined;
  };
}): Promise<MonthCosts | undefined> {
  const { stored, account, organization, nowMs, costs, ownerOf, observed } = options;
  const metadata = await stored.metadata();
  if (metadata === undefined) return undefined;
  const month = billingMonth(nowMs, metadata.plans, nowMs);
  const bill = { byProject: false, lineOf: ownerOf, priceAt: pricesOf(metadata, costs, account) };
  const lines: MonthCosts['lines'] = [];
  const past = new Map<string, Days>();
  const unknown: Unknown = { days: new Map(), expected: new Map() };
  let knownUntilMs = 0;
  for (const units of projectsOf(await stored.units())) {
    const series = (await stored.read(units)).map(seriesOf);
    knownUntilMs = Math.max(knownUntilMs, lastKnownMs(series));
    for (const [projectId, ofProject] of groupBy(series, (one) => one.projectId)) {
      const { lines: found } = billOf({ ...bill, series: ofProject, fromMs: month.fromMs, toMs: month.untilMs });
      lines.push(...found.map((line) => ({ ...line, projectId })));
      const span = pastOf(ofProject, month.untilMs);
      const daily = [...dailyLines({ ...bill, series: ofProject, ...span })];
      for (const { dayMs, line } of daily) addLine(daysLine(getOrAdd(past, line.name), dayMs), line);
      addUnknown(unknown, sum(found.map(({ unknownHours }) => unknownHours)), { ...span, daily });
    }
  }
  const counterfactual =
    observed &&
    (await counterfactualOf({ ...observed, stored, ownerOf, untilMs: month.untilMs, priceAt: bill.priceAt }));
  return {
    account,
    organization,
    month,
    knownUntilMs,
    lines,
    days: past,
    ...ownersIn(lines, { past, unknown }, month),
    ...(counterfactual && { counterfactual }),
  };
}

/** Returns the price of a CU-hour in US dollars at an instant; undefined for a plan without a price. */
export function pricesOf({ plans }: UsageMetadata, costs: CostRules, account: string) {
  const prices = { plans, prices: costs.prices, otherwise: costs.plans.get(account) };
  return (startMs: number) => priceAt(startMs, prices);
}

/** The start of the first bucket, even if its usage is unknown; infinity if there is none. */
export function firstBucketMs(series: readonly UsageSeries[]): number {
  return Math.min(...series.flatMap(({ buckets }) => buckets.slice(0, 1).map(({ startMs }) => startMs)));
}

/** The end of the last bucket whose usage is known; 0 if there is none. */
export function lastKnownMs(series: readonly UsageSeries[]): number {
  const ends = series.map(({ buckets }) => {
    const last = buckets.findLast(({ cuSeconds }) => cuSeconds !== null);
    return last ? last.startMs + last.seconds * 1000 : 0;
  });
  return Math.max(0, ...ends);
}

export function addUnderName(sums: Map<string, BillLine>, line: BillLine): void {
  const sum = sums.get(line.name);
  if (sum) addLine(sum, line);
  else sums.set(line.name, { ...line });
}

function noUse(): BillLine {
  return { name: '', cuSeconds: 0, usd: 0, unknownHours: 0 };
}

/** By start of the day. */
type Days = Map<number, BillLine>;

function daysLine(days: Days, dayMs: number): BillLine {
  const line = days.get(dayMs) ?? noUse();
  days.set(dayMs, line);
  return line;
}

function getOrAdd<K, V>(maps: Map<string, Map<K, V>>, name: string): Map<K, V> {
  const map = maps.get(name) ?? new Map();
  maps.set(name, map);
  return map;
}

/** Unknown usage by line. Unknown hours of a project may belong to any of its branches, so they count for all lines of the project. */
interface Unknown {
  /** The past days with unknown hours, by line and start of the day. */
  days: Map<string, Map<number, true>>;
  /** The usage that is expected in the unknown hours of this month, by line. */
  expected: Map<string, BillLine>;
}

/** Adds a project's unknown usage: `hours` unknown hours in this month, and those of its past days. */
function addUnknown(
  { days, expected }: Unknown,
  hours: number,
  { daily, ...span }: { fromMs: number; toMs: number; daily: readonly { dayMs: number; line: BillLine }[] },
): void {
  const names = new Set(daily.map(({ line }) => line.name));
  const unknownDays = daily.filter(({ line }) => line.unknownHours > 0);
  for (const name of names) for (const { dayMs } of unknownDays) getOrAdd(days, name).set(dayMs, true);
  const recent = { ...span, fromMs: Math.max(span.fromMs, span.toMs - PAST_DAYS * DAY_MS) };
  const lines = daily.filter(({ dayMs }) => dayMs >= recent.fromMs).map(({ line }) => line);
  for (const line of expectedInUnknown(hours, { ...recent, lines })) addUnderName(expected, line);
}

/** The span of past days in which the project existed. */
function pastOf(series: readonly UsageSeries[], untilMs: number): { fromMs: number; toMs: number } {
  const todayMs = untilMs - (untilMs % DAY_MS);
  const ends = series.flatMap(({ buckets }) =>
    buckets.slice(-1).map(({ startMs, seconds }) => startMs + seconds * 1000),
  );
  return {
    fromMs: Math.max(todayMs - ANOMALY_PAST_DAYS * DAY_MS, firstBucketMs(series)),
    toMs: Math.min(todayMs, Math.max(0, ...ends)),
  };
}

function ownersIn(
  lines: MonthCosts['lines'],
  { past, unknown }: { past: ReadonlyMap<string, Days>; unknown: Unknown },
  month: BillingMonth,
): Pick<MonthCosts, 'owners' | 'total'> {
  const owners = new Map<string, BillLine>();
  const total = noUse();
  for (const { projectId: _, ...line } of lines) {
    addLine(total, line);
    addUnderName(owners, line);
  }
  const allDays: Days = new Map();
  for (const days of past.values()) for (const [dayMs, line] of days) addLine(daysLine(allDays, dayMs), line);
  const expectedInAll = noUse();
  for (const line of unknown.expected.values()) addLine(expectedInAll, line);
  const yesterdayMs = month.untilMs - (month.untilMs % DAY_MS) - DAY_MS;
  const sorted = [...owners.values()].sort((a, b) => b.cuSeconds - a.cuSeconds);
  return {
    total: projectedUsdOf(total, { days: withQuietDays(allDays, allDays), expected: expectedInAll, month }),
    owners: sorted.map((line): OwnerCosts => {
      const ownDays: Days = past.get(line.name) ?? new Map();
      const unknownDays = unknown.days.get(line.name) ?? new Map();
      const days = withoutDays(withQuietDays(ownDays, allDays), unknownDays);
      const expected = unknown.expected.get(line.name) ?? noUse();
      const projected = projectMonth(knownDays(days, 'cuSeconds'), {
        month,
        spent: line.cuSeconds,
        unknown: expected.cuSeconds,
      });
      const shown = shownProjection(projected);
      const usedByDay = knownDays(withoutDays(ownDays, unknownDays), 'cuSeconds');
      // Yesterday counts even if some of its hours are unknown: it used at least what is known.
      const yesterday = ownDays.get(yesterdayMs);
      if (yesterday) usedByDay.set(yesterdayMs, yesterday.cuSeconds);
      const anomaly = anomalyOf(usedByDay, { yesterdayMs, minExcess: LEAST_ANOMALY_CU_SECONDS });
      return {
        ...line,
        ...projectedUsdOf(line, { days, expected, month }),
        ...(typeof shown === 'object' && { projectedCuSeconds: shown }),
        // The line of unread projects has no usual use, since it consists of other projects each time.
        ...(anomaly && line.name !== NOT_READ && { anomaly }),
      };
    }),
  };
}

function projectedUsdOf(
  { usd: spent }: BillLine,
  { days, expected, month }: { days: Days; expected: BillLine; month: BillingMonth },
): ProjectedUsd {
  if (spent === undefined || expected.usd === undefined) return {};
  const shown = shownProjection(projectMonth(knownDays(days, 'usd'), { month, spent, unknown: expected.usd }));
  return typeof shown === 'object' ? { projectedUsd: shown } : { notProjected: shown };
}

/** Adds the days without use, since otherwise an idle weekend would be projected like workdays. */
function withQuietDays(days: Days, all: Days): Days {
  const firstMs = Math.min(...days.keys());
  const filled: Days = new Map(days);
  const lastMs = Math.max(...all.keys());
  for (let dayMs = firstMs; dayMs <= lastMs; dayMs += DAY_MS) daysLine(filled, dayMs);
  return filled;
}

function withoutDays(days: Days, without: ReadonlyMap<number, unknown>): Days {
  return new Map([...days].filter(([dayMs]) => !without.has(dayMs)));
}

function knownDays(days: Days, figure: 'cuSeconds' | 'usd'): Map<number, number> {
  const known = [...days].flatMap(([dayMs, { [figure]: value, unknownHours }]) =>
    value === undefined || unknownHours > 0 ? [] : [[dayMs, value] as const],
  );
  return new Map(known);
}

/** Yields the units of some projects at a time; the units of a project are never split. */
export function* projectsOf(units: readonly UsageUnit[]): Generator<UsageUnit[]> {
  const byProject = groupBy(units, ({ projectId }) => projectId);
  for (const chunk of chunksOf([...byProject.values()], PROJECTS_AT_ONCE)) yield chunk.flat();
}
