import type { Load } from '../fleet.ts';
import { admitWaiting, depart } from './connections.ts';
import type { Compute, ComputeLoad, WorldState } from './entities.ts';
import { wakeIfWanted } from './operations.ts';
import { firstIndex } from './pages.ts';
import { createRandom, hashText, nextRandom } from './random.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from './units.ts';
import { addUsage } from './usage.ts';

const SHORTEST_VISIT_MS = 1000;
const PERIODIC_QUERY_MS = 1000;

/** Starts a load of a compute; `index` is its number among the loads of the compute. */
export function startLoad(world: WorldState, compute: Compute, load: Load, index: number): void {
  const seed = hashText(compute.id, world.seed ^ Math.imul(index + 1, 0x27d4eb2f));
  world.due.add(world.nowMs, { kind: 'demand', compute, load: { load, seed, group: undefined } });
}

/** Lets a load's clients connect, leave, or need another size. Plans the next change of their demand. */
export function changeDemand(world: WorldState, compute: Compute, state: ComputeLoad): void {
  if (world.computes.get(compute.id) !== compute) return;
  const { isBusy, cu, untilMs } = demandAt(state.load, world.nowMs, state.seed);
  if (Number.isFinite(untilMs)) world.due.add(Math.ceil(untilMs), { kind: 'demand', compute, load: state });
  if (isBusy) keepClients(world, compute, state, cu);
  else if (state.group !== undefined) {
    // Clients that still wait for the start of the compute do their work after the start.
    if (compute.waiting.includes(state.group)) state.group.forMs = SHORTEST_VISIT_MS;
    else depart(world, compute, state.group);
    state.group = undefined;
  }
}

/** Connects the load's clients unless they are connected or waiting, and sets the size that they need. */
function keepClients(world: WorldState, compute: Compute, state: ComputeLoad, cu: number): void {
  const { group } = state;
  if (group !== undefined && (compute.connected.includes(group) || compute.waiting.includes(group))) {
    addUsage(compute, world.nowMs);
    group.cu = cu;
    return;
  }
  if (compute.disabled) return;
  state.group = { connections: 1, reconnects: true, isBusy: true, cu, cause: state.load.class };
  compute.waiting.push(state.group);
  admitWaiting(world, compute);
  wakeIfWanted(world, compute);
}

/** The demand of a load is a pure function of its seed and the time. Local time is UTC plus a fixed offset. */
interface Demand {
  /** Busy clients keep the compute awake. */
  isBusy: boolean;
  /** The size that serves them best, in CU. */
  cu: number;
  /** The end of this demand; Infinity: it never changes. */
  untilMs: number;
}

/** A number in [0, 1), the same for equal arguments. */
function noise(seed: number, slot: number, salt: number): number {
  const random = createRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(slot, 0x85ebca6b) ^ Math.imul(salt, 0xc2b2ae35));
  nextRandom(random);
  return nextRandom(random);
}

/** `day` is in local days since 1970-01-01; `dayStartMs` is the instant at which it begins. */
function localTime(ms: number, utcOffsetHours: number): { day: number; isWorkday: boolean; dayStartMs: number } {
  const offsetMs = utcOffsetHours * HOUR_MS;
  const day = Math.floor((ms + offsetMs) / DAY_MS);
  // 1970-01-01 was a Thursday.
  const weekday = (day + 3) % 7;
  return { day, isWorkday: weekday < 5, dayStartMs: day * DAY_MS - offsetMs };
}

/** The demand `inside` a span of a local day; outside it there are no clients. */
function within(
  ms: number,
  dayStartMs: number,
  span: { fromMs: number; toMs: number } | undefined,
  inside: () => Demand,
): Demand {
  if (span === undefined || ms >= span.toMs) return { isBusy: false, cu: 0, untilMs: dayStartMs + DAY_MS };
  if (ms < span.fromMs) return { isBusy: false, cu: 0, untilMs: span.fromMs };
  const demand = inside();
  return { ...demand, untilMs: Math.min(demand.untilMs, span.toMs) };
}

interface Local {
  utcOffsetHours: number;
}
interface Sized {
  cu: number;
}

/** People at work: most quarters of an hour from 8 to 18 on workdays, with a size that changes from one to the next. */
function officeUsers(load: Local & Sized, ms: number, seed: number): Demand {
  const { isWorkday, dayStartMs } = localTime(ms, load.utcOffsetHours);
  const hours = { fromMs: dayStartMs + 8 * HOUR_MS, toMs: dayStartMs + 18 * HOUR_MS };
  return within(ms, dayStartMs, isWorkday ? hours : undefined, () => {
    const slot = Math.floor(ms / (15 * MINUTE_MS));
    const isBusy = noise(seed, slot, 1) < 0.85;
    const cu = isBusy ? load.cu * (0.4 + 0.6 * noise(seed, slot, 2)) : 0;
    return { isBusy, cu, untilMs: (slot + 1) * 15 * MINUTE_MS };
  });
}

/** A query of one second, repeated at a fixed interval. */
function periodic(load: Sized & { everySeconds: number }, ms: number): Demand {
  const everyMs = load.everySeconds * 1000;
  const sinceMs = ms % everyMs;
  const isBusy = sinceMs < PERIODIC_QUERY_MS;
  return { isBusy, cu: isBusy ? load.cu : 0, untilMs: ms - sinceMs + (isBusy ? PERIODIC_QUERY_MS : everyMs) };
}

/** On every second workday a client leaves a transaction open for some hours. */
function idleInTransaction(load: Local & { hours: number }, ms: number, seed: number): Demand {
  const { day, isWorkday, dayStartMs } = localTime(ms, load.utcOffsetHours);
  const fromMs = dayStartMs + Math.floor((9 + 4 * noise(seed, day, 2)) * HOUR_MS);
  const opens = isWorkday && noise(seed, day, 1) < 0.5;
  const span = opens ? { fromMs, toMs: fromMs + load.hours * HOUR_MS } : undefined;
  return within(ms, dayStartMs, span, () => ({ isBusy: true, cu: 0, untilMs: Number.POSITIVE_INFINITY }));
}

/** Each night a job of twenty minutes to an hour, which begins between 2:00 and 2:30. */
function nightBatch(load: Local & Sized, ms: number, seed: number): Demand {
  const { day, dayStartMs } = localTime(ms, load.utcOffsetHours);
  const fromMs = dayStartMs + 2 * HOUR_MS + Math.floor(noise(seed, day, 1) * 30) * MINUTE_MS;
  const toMs = fromMs + Math.floor(20 + 40 * noise(seed, day, 2)) * MINUTE_MS;
  return within(ms, dayStartMs, { fromMs, toMs }, () => ({ isBusy: true, cu: load.cu, untilMs: toMs }));
}

/**
 * Calls of other programs. Some intervals of five minutes are busy, fewer of them at night. In most of these the size is about `cu`; in a few it
 * is up to ten times as much.
 */
function burstyApi(load: Local & Sized, ms: number, seed: number): Demand {
  const slot = Math.floor(ms / (5 * MINUTE_MS));
  const { dayStartMs } = localTime(ms, load.utcOffsetHours);
  const hour = (ms - dayStartMs) / HOUR_MS;
  const isBusy = noise(seed, slot, 1) < (hour >= 7 && hour < 22 ? 0.35 : 0.05);
  const cu = isBusy ? load.cu / (0.1 + 2 * noise(seed, slot, 2)) : 0;
  return { isBusy, cu, untilMs: (slot + 1) * 5 * MINUTE_MS };
}

/** A measured trace: each point is valid until the next; 0 CU means no clients. */
function trace(points: readonly { atMs: number; cu: number }[], ms: number): Demand {
  const next = firstIndex(points, ({ atMs }) => atMs > ms);
  const cu = points[next - 1]?.cu ?? 0;
  return { isBusy: cu > 0, cu, untilMs: points[next]?.atMs ?? Number.POSITIVE_INFINITY };
}

export function demandAt(load: Load, ms: number, seed: number): Demand {
  switch (load.class) {
    case 'office_users':
      return officeUsers(load, ms, seed);
    case 'cron_ping':
    case 'queue_poller':
      return periodic(load, ms);
    case 'replication':
      return { isBusy: true, cu: load.cu, untilMs: Number.POSITIVE_INFINITY };
    case 'idle_in_transaction':
      return idleInTransaction(load, ms, seed);
    case 'night_batch':
      return nightBatch(load, ms, seed);
    case 'bursty_api':
      return burstyApi(load, ms, seed);
    case 'trace':
      return trace(load.points, ms);
  }
}
