/** The usage of projects and branches as the consumption routes show it: delayed, incomplete, by plan. */
import type { Consumption } from '../fleet.ts';
import type { ProjectLedger, QuarterLedger, WorldState } from '../world/entities.ts';
import { hashText } from '../world/random.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../world/units.ts';
import { QUARTER_MS, quartersOf } from '../world/usage.ts';

/** The share of an hour's usage that is shown until its correction, a day after the hour has ended. */
const UNCORRECTED_SHARE = 0.9;

export type Granularity = 'hourly' | 'daily' | 'monthly';

interface Used {
  cuMs: number;
  activeMs: number;
}

/** A billing month, or the part of it in which a project had one plan. */
export interface Period {
  plan: string;
  startMs: number;
  /** Undefined while the period lasts. */
  endMs: number | undefined;
  /** The usage by the start of each bucket. */
  buckets: Map<number, Used>;
}

/** The start of the hour, day or calendar month (UTC) of an instant. */
export function bucketStart(ms: number, granularity: Granularity): number {
  if (granularity === 'hourly') return ms - (ms % HOUR_MS);
  if (granularity === 'daily') return ms - (ms % DAY_MS);
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

export function bucketEnd(startMs: number, granularity: Granularity): number {
  if (granularity === 'hourly') return startMs + HOUR_MS;
  if (granularity === 'daily') return startMs + DAY_MS;
  const date = new Date(startMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** The end of the usage that is visible at `nowMs`. */
function shownUntilMs({ delayMinutes, stalls }: Consumption, nowMs: number): number {
  const delayed = nowMs - delayMinutes * MINUTE_MS;
  const stall = stalls.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs);
  const untilMs = Math.min(delayed, stall?.fromMs ?? delayed);
  return untilMs - (untilMs % QUARTER_MS);
}

/** True if at first too little usage is shown for the hour, as for this `share` of hours. `hour` counts hours since the epoch. */
function isCorrectedLater(unit: string, hour: number, share: number): boolean {
  const hash = hashText(unit, Math.imul(hour, 0x9e3779b1));
  return ((hash ^ (hash >>> 15)) >>> 0) / 0x1_0000_0000 < share;
}

function planAt(ledger: ProjectLedger, ms: number): { plan: string; sinceMs: number; untilMs: number } {
  const index = ledger.plans.findLastIndex(({ fromMs }) => fromMs <= ms);
  const current = ledger.plans[Math.max(0, index)];
  return {
    plan: current?.plan ?? '',
    sinceMs: current?.fromMs ?? 0,
    untilMs: ledger.plans[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY,
  };
}

/** A project, or one of its branches. */
export interface Unit {
  ledger: ProjectLedger;
  branchId?: string | undefined;
}

export function unitId({ ledger, branchId }: Unit): string {
  return branchId === undefined ? ledger.projectId : `${ledger.projectId}/${branchId}`;
}

/** The real usage of a unit. A project's usage includes the share that belongs to none of its branches. */
function trueQuarters(world: WorldState, { ledger, branchId }: Unit): QuarterLedger {
  if (branchId !== undefined) return quartersOf(world, ledger, branchId);
  const sum: QuarterLedger = new Map();
  const { unattributed } = world.consumption;
  for (const id of ledger.branches.keys()) {
    for (const [quarter, used] of quartersOf(world, ledger, id)) {
      const before = sum.get(quarter) ?? { cuMs: 0, activeMs: 0 };
      const cuMs = before.cuMs + used.cuMs / (1 - unattributed);
      sum.set(quarter, { cuMs, activeMs: before.activeMs + used.activeMs });
    }
  }
  return sum;
}

/** The visible periods of a unit from `fromMs` to `toMs`, oldest first. Time on the free plan is hidden. */
export function periodsOf(
  world: WorldState,
  unit: Unit,
  range: { fromMs: number; toMs: number; granularity: Granularity },
): Period[] {
  const { consumption, nowMs } = world;
  const untilMs = Math.min(range.toMs, shownUntilMs(consumption, nowMs));
  const fromMs = Math.max(range.fromMs, unit.branchId === undefined ? 0 : (consumption.branchesFromMs ?? 0));
  const quarters = trueQuarters(world, unit);
  const periods = new Map<number, Period>();
  const ascending = [...quarters.keys()].sort((a, b) => a - b);
  const shown = consumption.zeros === 'omitted' ? ascending : everyQuarter(fromMs, untilMs);
  for (const quarter of shown) {
    const ms = quarter * QUARTER_MS;
    if (ms < fromMs || ms >= untilMs) continue;
    const period = periodAt(unit.ledger, periods, ms, nowMs);
    if (period.plan === 'free') continue;
    const hour = Math.floor(ms / HOUR_MS);
    const isLow =
      nowMs < (hour + 1) * HOUR_MS + DAY_MS && isCorrectedLater(unitId(unit), hour, consumption.corrections);
    const start = bucketStart(ms, range.granularity);
    const before = period.buckets.get(start) ?? { cuMs: 0, activeMs: 0 };
    const { cuMs, activeMs } = quarters.get(quarter) ?? { cuMs: 0, activeMs: 0 };
    period.buckets.set(start, {
      cuMs: before.cuMs + cuMs * (isLow ? UNCORRECTED_SHARE : 1),
      activeMs: before.activeMs + activeMs,
    });
  }
  return [...periods.values()].filter(({ plan, buckets }) => plan !== 'free' && buckets.size > 0);
}

/** The real usage of a project, or of one of its branches, since the start of the calendar month. */
export function usedInMonth(world: WorldState, projectId: string, branchId?: string): Used {
  const sum = { cuMs: 0, activeMs: 0 };
  const ledger = world.ledgers.get(projectId);
  if (ledger === undefined) return sum;
  const first = bucketStart(world.nowMs, 'monthly') / QUARTER_MS;
  for (const [quarter, used] of trueQuarters(world, { ledger, branchId })) {
    if (quarter < first) continue;
    sum.cuMs += used.cuMs;
    sum.activeMs += used.activeMs;
  }
  return sum;
}

export function planNow(world: WorldState, projectId: string): string {
  const ledger = world.ledgers.get(projectId);
  return ledger === undefined ? world.plan : planAt(ledger, world.nowMs).plan;
}

function everyQuarter(fromMs: number, toMs: number): number[] {
  const first = Math.ceil(fromMs / QUARTER_MS);
  return Array.from({ length: Math.max(0, Math.ceil(toMs / QUARTER_MS) - first) }, (_, index) => first + index);
}

/** The billing month of an instant, cut where the plan changed. */
function periodAt(ledger: ProjectLedger, periods: Map<number, Period>, ms: number, nowMs: number): Period {
  const { plan, sinceMs, untilMs } = planAt(ledger, ms);
  const monthMs = bucketStart(ms, 'monthly');
  const startMs = Math.max(monthMs, sinceMs);
  const existing = periods.get(startMs);
  if (existing !== undefined) return existing;
  const endMs = Math.min(bucketEnd(monthMs, 'monthly'), untilMs);
  const period: Period = { plan, startMs, endMs: endMs <= nowMs ? endMs : undefined, buckets: new Map() };
  periods.set(startMs, period);
  return period;
}
