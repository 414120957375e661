import type { ComputeState } from '../compute/compute.ts';
import { lowerBound } from '../sorted.ts';
import { sum } from '../sum.ts';
import { DAY_MS } from '../time/units.ts';
import type { ComputeEvent } from './operation-log.ts';

/** An operation this close to a suspend may have caused it, so that the suspend does not show when clients left. */
const NEARBY_MS = 60_000;
/** A start this close to an availability check was caused by it. */
const NEAR_CHECK_MS = 60_000;
/** A start up to this long after the end of a suspend is part of a restart; instants are whole seconds. */
const RESTART_MS = 2_000;

/** More apparent restarts than this are not real; see {@link withClientsAtTimeout}. */
const MAX_RESTARTS_PER_DAY = 2;
const MIN_RESTARTS = 20;

/** One interval in which a compute was awake: [startMs, endMs). */
export interface AwakeInterval {
  startMs: number;
  endMs: number;
  /** `check`: the platform's availability check. `unknown`: it was already awake at the start of the data. */
  start: 'client' | 'check' | 'restart' | 'unknown';
  /** `operation`: a restart or a change of settings. `open`: the compute is still awake. */
  end: 'timeout' | 'operation' | 'open';
}

/** When one compute was awake during [fromMs, toMs), as far as known. Milliseconds since the epoch. */
export interface AwakeHistory {
  fromMs: number;
  toMs: number;
  /** The awake intervals, oldest first, without overlaps. */
  intervals: AwakeInterval[];
  /** Spans in which it is unknown whether the compute was awake. */
  unknown: { fromMs: number; toMs: number }[];
  /** The durations of finished starts, in milliseconds. */
  startDurationsMs: number[];
}

/** Facts about a compute that still exists. */
export interface PresentState {
  state: ComputeState;
  createdAtMs: number;
  startedAtMs?: number;
}

/**
 * Derives from operations (oldest first) when a compute was awake. Failed operations have no effect, nor have those from `toMs` on. The time
 * between two starts without a suspend, or two suspends without a start, is unknown. So is the time before the first operation if that is a
 * suspend.
 */
export function awakeHistory(
  allEvents: readonly ComputeEvent[],
  { fromMs, toMs, present }: { fromMs: number; toMs: number; present?: PresentState | undefined },
): AwakeHistory {
  const startMs = Math.min(Math.max(fromMs, present?.createdAtMs ?? fromMs), toMs);
  const history: AwakeHistory = {
    fromMs: startMs,
    toMs,
    intervals: [],
    unknown: [],
    startDurationsMs: [],
  };
  // The API's clock may be ahead of this machine's, and operations go on while they are read.
  const events = allEvents.filter(({ atMs }) => atMs < toMs);
  if (!events.some(hasEffect)) {
    const next = allEvents.find((event) => event.atMs >= toMs && hasEffect(event));
    const state = next?.effect === 'start' ? 'idle' : 'active';
    return withoutOperations(history, present && next ? { ...present, state } : present);
  }
  let awake: AwakeInterval | undefined;
  let lastSuspend: ComputeEvent | undefined;

  function wake(event: ComputeEvent, index: number): void {
    if (event.result === 'done') history.startDurationsMs.push(event.durationMs);
    if (awake) history.unknown.push({ fromMs: awake.startMs, toMs: event.atMs });
    awake = { startMs: event.atMs, endMs: toMs, start: causeOfStart(events, index, lastSuspend), end: 'open' };
  }

  function sleep(event: ComputeEvent, index: number): void {
    const unknownFromMs = lastSuspend?.atMs ?? startMs;
    if (awake) {
      awake.endMs = event.atMs;
      awake.end = causeOfEnd(events, index, awake.startMs);
      history.intervals.push(awake);
    } else if (event.atMs > unknownFromMs) history.unknown.push({ fromMs: unknownFromMs, toMs: event.atMs });
    awake = undefined;
    lastSuspend = event;
  }

  for (const [index, event] of events.entries()) {
    if (hasEffect(event)) event.effect === 'start' ? wake(event, index) : sleep(event, index);
  }
  if (awake) history.intervals.push(awake);
  return withClientsAtTimeout(history, events);
}

/**
 * Reclassifies apparent restarts as clients if there are many per day: they come from a client that connects just when the timeout ends,
 * such as a ping every five minutes with a timeout of five minutes. Restarts after a change of settings stay.
 */
function withClientsAtTimeout(history: AwakeHistory, events: readonly ComputeEvent[]): AwakeHistory {
  const { intervals, fromMs, toMs } = history;
  const times = events.map(({ atMs }) => atMs);
  const misread = intervals.flatMap((interval, index) => {
    const next = intervals[index + 1];
    if (next?.start !== 'restart') return [];
    const { startMs, endMs } = interval;
    const nearby = events.slice(lowerBound(times, endMs - NEARBY_MS), lowerBound(times, endMs + NEARBY_MS + 1));
    const isSuspend = ({ atMs, effect }: ComputeEvent) => atMs === endMs && effect === 'suspend';
    const others = nearby.filter((event) => isSuspend(event) || event.atMs !== next.startMs);
    const suspend = others.findLastIndex(isSuspend);
    return suspend >= 0 && causeOfEnd(others, suspend, startMs) === 'timeout' ? [{ interval, next }] : [];
  });
  if (misread.length < Math.max(MIN_RESTARTS, (MAX_RESTARTS_PER_DAY * (toMs - fromMs)) / DAY_MS)) return history;
  for (const { interval, next } of misread) {
    interval.end = 'timeout';
    next.start = 'client';
  }
  return history;
}

/** True if an operation changes the state: a start that is done or pending, or a suspend that is done. */
function hasEffect({ effect, result }: ComputeEvent): boolean {
  return (
    (effect === 'start' && (result === 'done' || result === 'pending')) || (effect === 'suspend' && result === 'done')
  );
}

/** The history of a time without operations: the compute was always in its present state. If it is gone, nothing is known. */
function withoutOperations(history: AwakeHistory, present: PresentState | undefined): AwakeHistory {
  const { fromMs, toMs } = history;
  if (present === undefined || fromMs >= toMs) return { ...history, unknown: fromMs < toMs ? [{ fromMs, toMs }] : [] };
  if (present.state !== 'active') return history;
  return { ...history, intervals: [{ startMs: fromMs, endMs: toMs, start: 'unknown', end: 'open' }] };
}

function causeOfStart(
  events: readonly ComputeEvent[],
  index: number,
  suspended: ComputeEvent | undefined,
): AwakeInterval['start'] {
  const { atMs } = events[index] as ComputeEvent;
  if (suspended && atMs - suspended.atMs <= suspended.durationMs + RESTART_MS) return 'restart';
  return hasNear(events, index, NEAR_CHECK_MS, ({ effect }) => effect === 'check') ? 'check' : 'client';
}

/**
 * What ended an interval: the timeout, unless another operation is near. The start of the interval itself does not count, nor does a
 * start after the compute fell asleep.
 */
function causeOfEnd(events: readonly ComputeEvent[], index: number, startMs: number): AwakeInterval['end'] {
  const suspend = events[index] as ComputeEvent;
  const asleepMs = suspend.atMs + suspend.durationMs + RESTART_MS;
  const isOther = ({ effect, atMs }: ComputeEvent) => !(effect === 'start' && (atMs === startMs || atMs > asleepMs));
  return hasNear(events, index, NEARBY_MS, isOther) ? 'operation' : 'timeout';
}

/** True if the test accepts another event within `withinMs` of the event at `index`. `events` are in order of time. */
function hasNear(
  events: readonly ComputeEvent[],
  index: number,
  withinMs: number,
  test: (event: ComputeEvent) => boolean,
): boolean {
  const atMs = events[index]?.atMs ?? 0;
  for (const step of [-1, 1]) {
    for (let other = index + step; ; other += step) {
      const event = events[other];
      if (event === undefined || Math.abs(event.atMs - atMs) > withinMs) break;
      if (test(event)) return true;
    }
  }
  return false;
}

/** The share of the known time in which the compute was awake, in [0, 1]; undefined if nothing is known. */
export function awakeShare(history: AwakeHistory): number | undefined {
  const knownMs = knownTimeMs(history);
  return knownMs <= 0 ? undefined : awakeMs(history) / knownMs;
}

/** The time in which it is known whether the compute was awake, in milliseconds. */
export function knownTimeMs({ fromMs, toMs, unknown }: AwakeHistory): number {
  return toMs - fromMs - sum(unknown.map((gap) => gap.toMs - gap.fromMs));
}

export function awakeMs({ intervals }: AwakeHistory): number {
  return sum(intervals.map(lengthMs));
}

export function lengthMs({ startMs, endMs }: AwakeInterval): number {
  return endMs - startMs;
}

/** The part of a history from an instant on. */
export function historyFrom(history: AwakeHistory, fromMs: number): AwakeHistory {
  if (fromMs <= history.fromMs) return history;
  const unknown = history.unknown
    .filter(({ toMs }) => toMs > fromMs)
    .map((one) => ({ ...one, fromMs: Math.max(one.fromMs, fromMs) }));
  const intervals = history.intervals
    .filter(({ endMs }) => endMs > fromMs)
    .map((one): AwakeInterval => (one.startMs < fromMs ? { ...one, startMs: fromMs, start: 'unknown' } : one));
  return { ...history, fromMs: Math.min(fromMs, history.toMs), intervals, unknown };
}
