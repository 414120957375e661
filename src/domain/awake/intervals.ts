import type { ComputeState } from '../compute/compute.ts';
import { DAY_MS } from '../time/units.ts';
import type { ComputeEvent } from './operation-log.ts';

/** An operation this close to a suspend may be its cause, or that of the timeout: then the end of its clients is not known from it. */
const NEARBY_MS = 60_000;
/** A start this close to an availability check belongs to the check. */
const CHECK_MS = 60_000;
/** A start that comes before the suspend has ended, or just then, is the second half of a restart: instants are whole seconds. */
const RESTART_MS = 2_000;

/** More frequent starts after short pauses are no restarts. */
const MOST_RESTARTS_A_DAY = 2;
const LEAST_RESTARTS = 20;

/** One stretch in which a compute was awake: [startMs, endMs). */
export interface AwakeInterval {
  startMs: number;
  endMs: number;
  /** The cause of the start: a client, the platform's availability check, a restart. `unknown`: it was awake before anything is known. */
  start: 'client' | 'check' | 'restart' | 'unknown';
  /** The cause of the end: the timeout; another operation (restart, change of settings); `open`: it is still awake, so it is censored. */
  end: 'timeout' | 'operation' | 'open';
}

/** When one compute was awake, as far as is known: [fromMs, toMs). Milliseconds since the epoch. */
export interface AwakeHistory {
  fromMs: number;
  toMs: number;
  /** Oldest first, apart from each other. */
  intervals: AwakeInterval[];
  /** Spans in which it is unknown if it was awake. */
  unknown: { fromMs: number; toMs: number }[];
  /** Durations of finished starts, milliseconds. */
  startDurationsMs: number[];
  /** The end of the last awake stretch; undefined while it is awake or nothing is known. */
  asleepSinceMs: number | undefined;
}

/** Further facts of a compute that still exists. */
export interface ComputeHint {
  state: ComputeState;
  createdAtMs: number;
  startedAtMs?: number;
}

/**
 * Derives when a compute was awake from its operations (oldest first). A failed suspend keeps it awake, a failed start does not wake it.
 * Two starts without a suspend between them, or two suspends, leave the time between them unknown. So is the time before the first
 * operation if that is a suspend.
 */
export function awakeHistory(
  events: readonly ComputeEvent[],
  { fromMs, toMs, hint }: { fromMs: number; toMs: number; hint?: ComputeHint | undefined },
): AwakeHistory {
  const beginsMs = Math.min(Math.max(fromMs, hint?.createdAtMs ?? fromMs), toMs);
  const history: AwakeHistory = {
    ...{ fromMs: beginsMs, toMs, intervals: [], unknown: [], startDurationsMs: [] },
    asleepSinceMs: undefined,
  };
  if (!events.some(hasEffect)) return withoutOperations(history, hint);
  let awake: AwakeInterval | undefined;
  let suspended: ComputeEvent | undefined;

  function wake(event: ComputeEvent, index: number): void {
    if (event.result === 'done') history.startDurationsMs.push(event.durationMs);
    if (awake) history.unknown.push({ fromMs: awake.startMs, toMs: event.atMs });
    awake = { startMs: event.atMs, endMs: toMs, start: startOf(events, index, suspended), end: 'open' };
  }

  function sleep(event: ComputeEvent, index: number): void {
    const unknownFromMs = suspended?.atMs ?? beginsMs;
    if (awake) {
      awake.endMs = event.atMs;
      awake.end = endOf(events, index, awake.startMs);
      history.intervals.push(awake);
    } else if (event.atMs > unknownFromMs) history.unknown.push({ fromMs: unknownFromMs, toMs: event.atMs });
    awake = undefined;
    suspended = event;
  }

  for (const [index, event] of events.entries()) {
    if (hasEffect(event)) event.effect === 'start' ? wake(event, index) : sleep(event, index);
  }
  if (awake) history.intervals.push(awake);
  else history.asleepSinceMs = suspended?.atMs;
  return withClientsAtTimeout(history, events);
}

/**
 * Many apparent restarts a day come from a client that connects just when the timeout has passed, such as a ping each five minutes under a
 * timeout of five minutes. A restart after a change of settings is real.
 */
function withClientsAtTimeout(history: AwakeHistory, events: readonly ComputeEvent[]): AwakeHistory {
  const { intervals, fromMs, toMs } = history;
  const found = intervals.flatMap((one, index) => {
    const next = intervals[index + 1];
    if (next?.start !== 'restart') return [];
    const nearby = events.slice(firstFrom(events, one.endMs - NEARBY_MS), firstFrom(events, one.endMs + NEARBY_MS + 1));
    const isSuspend = ({ atMs, effect }: ComputeEvent) => atMs === one.endMs && effect === 'suspend';
    const others = nearby.filter((event) => isSuspend(event) || event.atMs !== next.startMs);
    const suspend = others.findLastIndex(isSuspend);
    return suspend >= 0 && endOf(others, suspend, one.startMs) === 'timeout' ? [{ one, next }] : [];
  });
  if (found.length < Math.max(LEAST_RESTARTS, (MOST_RESTARTS_A_DAY * (toMs - fromMs)) / DAY_MS)) return history;
  for (const { one, next } of found) {
    one.end = 'timeout';
    next.start = 'client';
  }
  return history;
}

/** A start that is still under way will wake it; a suspend that is still under way has not ended it. */
function hasEffect({ effect, result }: ComputeEvent): boolean {
  return (
    (effect === 'start' && (result === 'done' || result === 'pending')) || (effect === 'suspend' && result === 'done')
  );
}

/** Nothing happened: it is as it is now, and has been so for as long as operations are known. */
function withoutOperations(history: AwakeHistory, hint: ComputeHint | undefined): AwakeHistory {
  const { fromMs, toMs } = history;
  if (hint === undefined || fromMs >= toMs) return { ...history, unknown: fromMs < toMs ? [{ fromMs, toMs }] : [] };
  if (hint.state !== 'active') return { ...history, asleepSinceMs: fromMs };
  return { ...history, intervals: [{ startMs: fromMs, endMs: toMs, start: 'unknown', end: 'open' }] };
}

function startOf(
  events: readonly ComputeEvent[],
  index: number,
  suspended: ComputeEvent | undefined,
): AwakeInterval['start'] {
  const { atMs } = events[index] as ComputeEvent;
  if (suspended && atMs - suspended.atMs <= suspended.durationMs + RESTART_MS) return 'restart';
  return hasNear(events, index, CHECK_MS, ({ effect }) => effect === 'check') ? 'check' : 'client';
}

/**
 * The timeout, unless another operation of the compute is near. The start of the interval is none, nor is one that comes once the
 * compute is asleep: that ends the sleep.
 */
function endOf(events: readonly ComputeEvent[], index: number, startMs: number): AwakeInterval['end'] {
  const suspend = events[index] as ComputeEvent;
  const asleepMs = suspend.atMs + suspend.durationMs + RESTART_MS;
  const isOther = ({ effect, atMs }: ComputeEvent) => !(effect === 'start' && (atMs === startMs || atMs > asleepMs));
  return hasNear(events, index, NEARBY_MS, isOther) ? 'operation' : 'timeout';
}

/** Is another event within this many milliseconds of `of` accepted by the test? `events` are in the order of time. */
function hasNear(
  events: readonly ComputeEvent[],
  index: number,
  withinMs: number,
  isSo: (event: ComputeEvent) => boolean,
): boolean {
  const atMs = events[index]?.atMs ?? 0;
  for (const step of [-1, 1]) {
    for (let other = index + step; ; other += step) {
      const event = events[other];
      if (event === undefined || Math.abs(event.atMs - atMs) > withinMs) break;
      if (isSo(event)) return true;
    }
  }
  return false;
}

/** The place of the first event at or after an instant. */
function firstFrom(events: readonly ComputeEvent[], atMs: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((events[middle]?.atMs ?? 0) < atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The awake share of the known time; undefined if nothing is known. In [0, 1]. */
export function awakeShare(history: AwakeHistory): number | undefined {
  const knownMs = history.toMs - history.fromMs - lengthOf(history.unknown.map(({ fromMs, toMs }) => toMs - fromMs));
  return knownMs <= 0 ? undefined : awakeMs(history) / knownMs;
}

export function awakeMs({ intervals }: AwakeHistory): number {
  return lengthOf(intervals.map(({ startMs, endMs }) => endMs - startMs));
}

/** The part of a history between two instants. */
export function within(history: AwakeHistory, fromMs: number): AwakeHistory {
  if (fromMs <= history.fromMs) return history;
  const unknown = history.unknown
    .filter(({ toMs }) => toMs > fromMs)
    .map((one) => ({ ...one, fromMs: Math.max(one.fromMs, fromMs) }));
  const intervals = history.intervals
    .filter(({ endMs }) => endMs > fromMs)
    .map((one): AwakeInterval => (one.startMs < fromMs ? { ...one, startMs: fromMs, start: 'unknown' } : one));
  return { ...history, fromMs: Math.min(fromMs, history.toMs), intervals, unknown };
}

function lengthOf(lengths: readonly number[]): number {
  return lengths.reduce((sum, length) => sum + length, 0);
}
