/** Months on virtual time in which no lowering hurts: what guards hold back, or take back, all the same. */

import type { Policy } from '../../src/domain/policy/policy.ts';
import { aGuard, aSchedule, aWindow } from '../support/builders.ts';
import { diceFrom } from '../support/dice.ts';
import { aSelector } from '../support/selectors.ts';
import { type GuardedFleet, type MemberOptions, SOURCE, startGuardedFleet, type Written } from './guarded-fleet.ts';
import { compareReplay } from './replayed-fleet.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** A Monday. Prometheus takes no samples from the future. */
const START_MS = Date.UTC(2024, 0, 1);
/** Before policies begin there is a past of so many days. */
const PAST_DAYS = 14;
const MONTH_DAYS = 30;

const EVENINGS = [17.5 * 60, 18 * 60, 18.5 * 60];
const MORNING = 7 * 60;
const LARGE = { minCu: 1, maxCu: 4 };
const SMALL = { minCu: 0.5, maxCu: 2 };
const WATCH_MS = 30 * MINUTE_MS;

/** A lowering that a guard holds back for longer counts as held back. */
const HELD_MS = 10 * MINUTE_MS;

export interface MonthsOptions {
  seed: number;
  computes: number;
  months: number;
  outages: number;
  /** Told the figures after each ten days. */
  onDays?: (figures: Months) => void;
}

export interface Months {
  computeMonths: number;
  lowerings: { awake: number; asleep: number; held: number; delayed: number };
  harms: number;
  undos: { all: number; dropping: number };
  outages: { all: number; harms: number };
  watches: Record<string, number>;
  found: string[];
}

const CONNECTIONS = 10;

/** The clients of a compute that a small size serves well: in the day, in nightly batches, at all hours, or never at night. */
function memberOf(index: number, seed: number): MemberOptions {
  const dice = diceFrom(seed + index);
  const [phaseMs, need] = [dice.uniform() * HOUR_MS, 0.15 + 0.1 * dice.uniform()];
  const batchMs = (20 + 20 * dice.uniform()) * MINUTE_MS;
  const kind = index % 3;
  const noise = Array.from({ length: 997 }, () => 0.85 + 0.3 * dice.uniform());
  const usualAt = (ms: number): number => {
    const isWeekend = Math.floor((ms - START_MS) / DAY_MS) % 7 >= 5;
    const wave = 1 + 0.4 * Math.sin((2 * Math.PI * ((ms % DAY_MS) - phaseMs - 8 * HOUR_MS)) / DAY_MS);
    return need * wave * (isWeekend ? 0.5 : 1) * (noise[Math.floor(ms / (15 * MINUTE_MS)) % 997] ?? 1);
  };
  const isWithin = (ms: number, fromHour: number, lengthMs: number) => {
    const sinceMs = (ms % DAY_MS) - fromHour * HOUR_MS;
    return sinceMs >= 0 && sinceMs < lengthMs;
  };
  const demandAt = (ms: number): number => {
    if (kind === 1) {
      const isBusy = isWithin(ms - phaseMs, 7.5, 9.5 * HOUR_MS) || isWithin(ms, 2, batchMs);
      return isBusy ? usualAt(ms) : 0;
    }
    if (kind === 2 && !isWithin(ms, 7.5, 12 * HOUR_MS)) return 0;
    return usualAt(ms) * (isWithin(ms, 18, batchMs) ? 1.8 : 1);
  };
  return { name: `c${index}`, settings: { ...LARGE, suspendTimeoutSeconds: kind === 1 ? 300 : -1 }, demandAt };
}

function policies(): Policy[] {
  const query = (part: string) => `sum by (service) (rate(http_request_duration_seconds_${part}[2m]))`;
  const guard = aGuard({
    ...{ name: 'latency', source: SOURCE, remedy: 'undo_with_restart', watchMs: WATCH_MS },
    query: `${query('sum')} / ${query('count')}`,
    badWhen: { side: 'above', limit: 1.5, relative: true },
  });
  const nights = EVENINGS.map((evening, index) =>
    aSchedule({
      ...{
        name: `nights-${index}`,
        select: aSelector({ projects: [`c*${index}`, `c*${index + 3}`, `c*${index + 6}`] }),
      },
      windows: [
        { at: [aWindow({ days: [1, 2, 3, 4, 5, 6, 7], startMinute: MORNING, endMinute: evening })], size: LARGE },
      ],
      otherwise: { size: SMALL },
      disruption: { lower: { when: 'any', atDeadline: 'apply' }, newlyDiscovered: 'act', atOnce: 1 },
    }),
  );
  return [guard, ...nights];
}

export async function runMonths({ seed, computes, months, outages, onDays = () => {} }: MonthsOptions) {
  const fleet = await startGuardedFleet({
    ...{ seed, startMs: START_MS, watchMs: WATCH_MS, keeps: 'mean', scrapeMs: MINUTE_MS, keepsPast: true },
    members: Array.from({ length: computes }, (_, index) => memberOf(index, seed)),
    boundaries: [MORNING, ...EVENINGS],
    evenings: EVENINGS,
    leftOut: [
      [0, 2 * 60 - 10],
      [3 * 60 + 30, MORNING - 10],
      [MORNING + 10, 16 * 60 + 10],
      [20 * 60, 24 * 60],
    ],
  });
  try {
    const { latency } = fleet;
    const always = { fromMs: 0, seed };
    latency.add({ id: 'noise', effect: 'noise', factor: 1.25, share: 1, ...always });
    latency.add({ id: 'gaps', effect: 'gaps', share: 0.02, ...always });
    latency.add({ id: 'resets', effect: 'resets', share: 0.0005, ...always });
    await fleet.runTo(START_MS + PAST_DAYS * DAY_MS);
    fleet.setPolicies(policies());
    const days = MONTH_DAYS * months;
    const outagesMs = outagesOf({ seed, days, outages });
    const written: Written[] = [];
    const delays = new Map<string, number>();
    const figures = (computeMonths: number) => figuresOf(fleet, { written, delays, outagesMs, computeMonths });
    for (let day = 0; day < days; day += 1) {
      const dayMs = START_MS + (PAST_DAYS + day) * DAY_MS;
      addEvents(fleet, { seed, dayMs, day, outagesMs });
      const look = (atMs: number) => noteDelays(fleet, delays, atMs);
      for (const one of await fleet.runTo(dayMs + DAY_MS, look)) written.push(one);
      if (day % 10 === 9) onDays(await figures((computes * (day + 1)) / MONTH_DAYS));
    }
    const replay = await compareReplay(fleet, START_MS + PAST_DAYS * DAY_MS);
    return { ...(await figures(computes * months)), replay };
  } finally {
    await fleet.close();
  }
}

/** Half of them while lowerings are watched. */
function outagesOf({ seed, days, outages }: { seed: number; days: number; outages: number }) {
  const { uniform } = diceFrom(seed ^ 0x5eed);
  return Array.from({ length: outages }, (_, index) => {
    const dayMs = START_MS + (PAST_DAYS + Math.floor((index / outages) * days)) * DAY_MS;
    const ofDayMs = index % 2 === 0 ? 17.5 * HOUR_MS + uniform() * HOUR_MS : uniform() * DAY_MS;
    const fromMs = dayMs + Math.floor(ofDayMs / MINUTE_MS) * MINUTE_MS;
    return { fromMs, forMs: Math.round(5 + 15 * uniform()) * MINUTE_MS };
  });
}

/** Outages of a day, and deploys at the boundary of every tenth compute. */
function addEvents(
  { latency, members }: GuardedFleet,
  {
    seed,
    dayMs,
    day,
    outagesMs,
  }: { seed: number; dayMs: number; day: number; outagesMs: ReturnType<typeof outagesOf> },
): void {
  latency.clear('event');
  const { uniform } = diceFrom(seed + 7919 * (day + 1));
  for (const { fromMs, forMs } of outagesMs) {
    if (fromMs + forMs > dayMs && fromMs < dayMs + DAY_MS)
      latency.add({ id: 'event', effect: 'outage', fromMs, forMs, share: 1, seed });
  }
  for (const { compute } of members.values()) {
    const evening = EVENINGS[Number(compute.computeId.at(-1)) % 3] ?? 0;
    const forMs = (60 + 60 * uniform()) * 1000;
    const fromMs = dayMs + evening * MINUTE_MS + Math.floor(4 * uniform()) * 30_000;
    if (uniform() < 0.1)
      latency.add({ id: 'event', effect: 'deploy', computeId: compute.computeId, fromMs, forMs, share: 1, seed });
  }
}

/** How long guards have held each lowering back until now. */
function noteDelays({ members }: GuardedFleet, delays: Map<string, number>, atMs: number): void {
  for (const { compute, waits } of members.values()) {
    if (!waits?.forGuard) continue;
    const key = `${compute.computeId} ${Math.floor(atMs / DAY_MS)}`;
    delays.set(key, (delays.get(key) ?? 0) + 30_000);
  }
}

async function figuresOf(
  { store, counted }: GuardedFleet,
  {
    written,
    delays,
    outagesMs,
    computeMonths,
  }: {
    written: Written[];
    delays: Map<string, number>;
    outagesMs: ReturnType<typeof outagesOf>;
    computeMonths: number;
  },
) {
  const harms = (await store.history({ limit: 100_000 })).filter(({ kind }) => kind === 'guard');
  const lowered = written.filter(({ action, isUndo }) => !action.raises && !isUndo);
  const undos = written.filter(({ action, isUndo }) => action.raises && isUndo);
  const isInOutage = (atMs: number) =>
    outagesMs.some(({ fromMs, forMs }) => atMs >= fromMs && atMs < fromMs + forMs + 5 * MINUTE_MS);
  return {
    computeMonths,
    lowerings: {
      awake: lowered.filter(({ action }) => action.disconnects).length,
      asleep: lowered.filter(({ action }) => !action.disconnects).length,
      delayed: delays.size,
      held: [...delays.values()].filter((ms) => ms > HELD_MS).length,
    },
    harms: harms.length,
    undos: { all: undos.length, dropping: undos.filter(({ action }) => action.disconnects).length * CONNECTIONS },
    outages: { all: outagesMs.length, harms: harms.filter(({ atMs }) => isInOutage(atMs)).length },
    watches: Object.fromEntries(counted),
    found: harms.map(({ computeId, atMs }) => `${computeId} ${new Date(atMs).toISOString()}`),
  };
}
