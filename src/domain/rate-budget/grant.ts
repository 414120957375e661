/**
 * The rate budget of one account as a pure function: a log of granted requests, and a decision on which wanted ones may be sent now. The
 * implementations on Redis and Postgres give the same answers; the contract suite compares them with this one.
 */
import { MINUTE_MS, SECOND_MS } from '../time/units.ts';
import type { RateLimits } from './limits.ts';

/** The priorities of requests that wait for the same account, the most urgent first. */
export const PRIORITIES = ['raise', 'lowering', 'read', 'operations', 'background'] as const;
export type Priority = (typeof PRIORITIES)[number];

/** From this priority on requests can wait, and leave a rest of each minute to those before it. */
export const FIRST_PATIENT: Priority = 'operations';
/** The share of the minute's limit up to which patient requests go, all requests counted. */
export const PATIENT_SHARE = 0.9;

/** All instants are milliseconds of the budget's own time, see {@link budgetTime}. */
export interface BudgetState {
  /** The latest instant at which the budget was asked. */
  lastMs: number;
  /** How far the clock has been set back since the state was made. */
  offsetMs: number;
  /** Send times over all routes, ascending: at least those of the last minute. */
  minute: readonly number[];
  /** The same by route, those of the last second at least. */
  routes: Readonly<Record<string, readonly number[]>>;
  /** At the steady rate: when all that was granted would have been sent. */
  steadyAtMs: number;
  /** Until then the minute is used at the steady rate, since the requests of the one before are unknown. */
  unknownUntilMs: number;
  /** The level learnt from 429, see {@link levelAt}. */
  level: number;
  learnedAtMs: number;
  /** The duration of a level before more is tried again. */
  probeMs: number;
  pausedUntilMs: number;
  /** By priority, until when a caller is known to wait. */
  waitingUntilMs: readonly number[];
}

export interface Wanted {
  route: string;
  /** The number of requests, at least 1. */
  count: number;
  priority: Priority;
  /** True if requests were sent since the last grant that the log doesn't have: the engine was away. */
  unlogged?: boolean;
  /** Entries of the route by which nothing was sent, on the budget's own time: they no longer count. */
  unsent?: readonly number[];
}

export interface Granted {
  /** The instant of the grant, in the budget's own time. */
  timeMs: number;
  /** Delays after which each of them may be sent, milliseconds; fewer than wanted, or none, where there is no room now. */
  afterMs: number[];
  /** Pause before asking for the rest, milliseconds. */
  waitMs: number;
  /** The present level. */
  level: number;
}

/** A granted request may be sent within this time, milliseconds; later ones are left to more urgent callers. */
export const BATCH_MS = 250;
/** The share of the second's limit that may go at once; the rest is spread over the second, so that a delay does not bunch it. */
export const AT_ONCE_SHARE = 0.25;
/** The share of the minute's limit that goes at once at the steady rate. */
export const STEADY_BURST_SHARE = 0.03;
/** A waiting caller asks again after this time, which shows that it still waits. */
export const ASK_AGAIN_MS = 1_000;
/** A priority counts as waiting for so much longer than it said. */
export const WAITING_SLACK_MS = 250;

/** At this level the minute is used at the steady rate; each further level halves it. */
export const STEADY_LEVEL = 2;
export const HIGHEST_LEVEL = 5;
/** The part of the second's limit that is left from level 1 on. */
export const SECOND_SHARE = 0.75;
/** Answers 429 closer together than this are one event: they were sent before the first was known. */
export const SAME_EVENT_MS = 2_000;
/** Levels above {@link STEADY_LEVEL} last this long; those up to it {@link BudgetState.probeMs}. */
export const HALVED_MS = 60_000;
/** Time at a lower level before more is tried again; doubled if that is answered 429 within the same time. */
export const PROBE_MS = 3_600_000;
export const LONGEST_PROBE_MS = 86_400_000;
/** The pause after a 429 without one. */
export const DEFAULT_PAUSE_MS = 1_000;
/** The longest that nothing is sent because of one answer, whatever it asks for: a changed compute must not wait for a day. */
export const LONGEST_PAUSE_MS = 300_000;

/** A log without an entry. Its first minute goes at the steady rate, unless it is `known` that nothing was sent before. */
export function newBudget({ jitterMs }: RateLimits, nowMs: number, known = false): BudgetState {
  return {
    lastMs: nowMs,
    offsetMs: 0,
    minute: [],
    routes: {},
    steadyAtMs: nowMs,
    unknownUntilMs: known ? nowMs : nowMs + MINUTE_MS + jitterMs,
    level: 0,
    learnedAtMs: 0,
    probeMs: PROBE_MS,
    pausedUntilMs: 0,
    waitingUntilMs: PRIORITIES.map(() => 0),
  };
}

/**
 * The budget's own time never runs backwards: a clock that is set back gives nothing, and from then on the budget's time is ahead of
 * it by as much.
 */
function budgetTime({ lastMs, offsetMs }: BudgetState, nowMs: number): { timeMs: number; offsetMs: number } {
  const timeMs = Math.max(lastMs, nowMs + offsetMs);
  return { timeMs, offsetMs: timeMs - nowMs };
}

/**
 * The level learnt from 429, as it counts at an instant of the budget's time. 0: the limits as documented. 1: a quarter less in a second.
 * 2: also the minute at the steady rate. Each above: at half the rate.
 */
export function levelAt({ level, learnedAtMs, probeMs }: BudgetState, timeMs: number): number {
  const quietMs = Math.max(0, timeMs - learnedAtMs);
  const halved = Math.max(0, level - STEADY_LEVEL);
  if (quietMs < halved * HALVED_MS) return level - Math.floor(quietMs / HALVED_MS);
  return Math.max(0, level - halved - Math.floor((quietMs - halved * HALVED_MS) / probeMs));
}

/**
 * A request of this priority goes while fewer than this were sent within a minute. Follow-ups of changes never use up the minute that a
 * raise, the confirmation of a write or its retry needs.
 */
function minuteLimitOf({ perMinute }: RateLimits, priority: Priority): number {
  const isPatient = PRIORITIES.indexOf(priority) >= PRIORITIES.indexOf(FIRST_PATIENT);
  return isPatient ? Math.max(1, Math.floor(perMinute * PATIENT_SHARE)) : perMinute;
}

/** The burst at the steady rate. */
export function steadyBurst({ perMinute }: RateLimits): number {
  return Math.ceil(perMinute * STEADY_BURST_SHARE);
}

/** The milliseconds between two requests at the steady rate. */
export function steadyIntervalMs({ perMinute, jitterMs }: RateLimits, level: number): number {
  return ((MINUTE_MS + jitterMs) / perMinute) * 2 ** Math.max(0, level - STEADY_LEVEL);
}

/**
 * Grants as many of the wanted requests as may be sent within the next {@link BATCH_MS}: at most `perMinute` in any minute and
 * `perRouteSecond` in any second on the route, each with the jitter, and none while a more urgent caller waits. Patient requests leave a
 * rest of the minute.
 */
export function grant(
  limits: RateLimits,
  before: BudgetState,
  nowMs: number,
  { route, count, priority, unlogged = false, unsent = [] }: Wanted,
): Granted & { state: BudgetState } {
  const { timeMs, offsetMs } = budgetTime(before, nowMs);
  const minuteMs = MINUTE_MS + limits.jitterMs;
  const level = levelAt(before, timeMs);
  const unknownUntilMs = unlogged ? timeMs + minuteMs : before.unknownUntilMs;
  const minute = since(before.minute, timeMs - minuteMs);
  const sent = since(before.routes[route] ?? [], timeMs - SECOND_MS - limits.jitterMs);
  const notSent = unsent.filter((instant) => take(minute, instant) && take(sent, instant)).length;
  const rank = PRIORITIES.indexOf(priority);
  const minuteLimit = minuteLimitOf(limits, priority);
  const urgentUntilMs = Math.max(0, ...before.waitingUntilMs.slice(0, rank));

  const instants: number[] = [];
  let nextMs = Math.max(timeMs, before.pausedUntilMs);
  const isSteady = level >= STEADY_LEVEL || timeMs < unknownUntilMs;
  const stepMs = steadyIntervalMs(limits, level);
  let steadyAtMs = before.steadyAtMs - notSent * stepMs;
  for (;;) {
    nextMs = Math.max(
      nextMs,
      roomAt(minute, minuteLimit, minuteMs),
      routeRoomAt(limits, sent, level),
      isSteady ? steadyAtMs - steadyBurst(limits) * stepMs : 0,
    );
    if (instants.length === count || urgentUntilMs > timeMs || nextMs > timeMs + BATCH_MS) break;
    instants.push(nextMs);
    // Of two routes the later one may be granted the earlier instant; the log stays in order, so it counts it as later.
    minute.push(Math.max(nextMs, minute.at(-1) ?? nextMs));
    sent.push(nextMs);
    steadyAtMs = Math.max(steadyAtMs, nextMs) + stepMs;
  }

  const isDone = instants.length === count;
  const untilMs = urgentUntilMs > timeMs ? urgentUntilMs : nextMs - BATCH_MS / 2;
  const waitMs = isDone ? 0 : Math.min(ASK_AGAIN_MS, Math.max(1, untilMs - timeMs));
  const waitingUntilMs = before.waitingUntilMs.map((known, at) =>
    at === rank && !isDone ? Math.max(known, timeMs + waitMs + WAITING_SLACK_MS) : known,
  );
  return {
    timeMs,
    afterMs: instants.map((instant) => instant - timeMs),
    waitMs,
    level,
    state: {
      ...before,
      lastMs: timeMs,
      offsetMs,
      minute,
      routes: { ...before.routes, [route]: sent },
      steadyAtMs,
      unknownUntilMs,
      waitingUntilMs,
    },
  };
}

/** After a 429: nothing for `pauseMs`, five minutes at most, and less from then on. */
export function learn(
  limits: RateLimits,
  before: BudgetState,
  nowMs: number,
  pauseMs: number = DEFAULT_PAUSE_MS,
): BudgetState {
  const { timeMs, offsetMs } = budgetTime(before, nowMs);
  const known = levelAt(before, timeMs);
  const isSame = before.level > 0 && timeMs - before.learnedAtMs < SAME_EVENT_MS;
  const level = isSame ? before.level : Math.min(HIGHEST_LEVEL, known + 1);
  const pausedUntilMs = Math.max(before.pausedUntilMs, timeMs + Math.min(pauseMs, LONGEST_PAUSE_MS));
  return {
    ...before,
    lastMs: timeMs,
    offsetMs,
    level,
    learnedAtMs: isSame ? before.learnedAtMs : timeMs,
    probeMs: isSame ? before.probeMs : probeAfter(before, known, timeMs),
    pausedUntilMs,
    // Nothing of a burst is left: the service has just refused as much.
    steadyAtMs: Math.max(before.steadyAtMs, pausedUntilMs + steadyBurst(limits) * steadyIntervalMs(limits, level)),
  };
}

/** Twice as long if more was tried and has just been refused, an hour otherwise. */
function probeAfter({ level, learnedAtMs, probeMs }: BudgetState, known: number, timeMs: number): number {
  const hasProbed = known < Math.min(level, STEADY_LEVEL);
  return hasProbed && timeMs - learnedAtMs < 4 * probeMs ? Math.min(LONGEST_PROBE_MS, 2 * probeMs) : PROBE_MS;
}

function since(instants: readonly number[], fromMs: number): number[] {
  return instants.filter((instant) => instant > fromMs);
}

/** Removes the last equal instant; false if there is none. */
function take(instants: number[], instant: number): boolean {
  const at = instants.lastIndexOf(instant);
  if (at >= 0) instants.splice(at, 1);
  return at >= 0;
}

/** When one more than `limit` in `windowMs` fits. */
function roomAt(instants: readonly number[], limit: number, windowMs: number): number {
  return (instants[instants.length - limit] ?? Number.NEGATIVE_INFINITY) + windowMs;
}

/** When the route has room for one more; requests beyond {@link AT_ONCE_SHARE} of its second are spread over it. */
function routeRoomAt({ perRouteSecond, jitterMs }: RateLimits, sent: readonly number[], level: number): number {
  const limit = level > 0 ? Math.max(1, Math.floor(perRouteSecond * SECOND_SHARE)) : perRouteSecond;
  const windowMs = SECOND_MS + jitterMs;
  const lastMs = sent.at(-1) ?? Number.NEGATIVE_INFINITY;
  const spreadMs = Math.min(roomAt(sent, Math.ceil(limit * AT_ONCE_SHARE), windowMs), lastMs + windowMs / limit);
  return Math.max(lastMs, roomAt(sent, limit, windowMs), spreadMs);
}
