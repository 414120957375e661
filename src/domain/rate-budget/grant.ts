/**
 * The rate budget of one account as pure functions: a log of granted requests, and how many more may be sent now. The implementations on
 * Redis and Postgres return the same results; contract tests compare them with this one.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../time/units.ts';
import type { RateLimits } from './limits.ts';

/** The priorities of requests in an account, the most urgent first. */
export const PRIORITIES = ['raise', 'lowering', 'read', 'operations', 'background'] as const;
export type Priority = (typeof PRIORITIES)[number];

/** Requests of this and later priorities are patient: they leave part of each minute to more urgent ones. */
export const FIRST_PATIENT: Priority = 'operations';
/** The share of the minute's limit up to which patient requests are granted, counting all requests. */
export const PATIENT_SHARE = 0.9;

/** The stored state of a rate budget. Instants are milliseconds of its own time, see {@link budgetTime}. */
export interface RateBudgetState {
  /** When the log began. Another value means that the log was lost and began anew. */
  beganAtMs: number;
  /** The instant of the latest request for permits. */
  lastMs: number;
  /** How far the clock has been set back since the state was created. */
  offsetMs: number;
  /** Send times on all routes, ascending; at least those of the last minute. */
  minute: readonly number[];
  /** Send times by route, ascending; at least those of the last second. */
  routes: Readonly<Record<string, readonly number[]>>;
  /** When all granted requests would have been sent at the steady rate. */
  steadyAtMs: number;
  /** Until this instant the steady rate applies, since earlier requests are unknown. */
  unknownUntilMs: number;
  /** How far the rate is reduced because of answers 429, see {@link levelAt}. */
  level: number;
  learnedAtMs: number;
  /** How long a level lasts before a lower one is tried. */
  probeMs: number;
  pausedUntilMs: number;
  /** The instants until which callers count as waiting, by priority. */
  waitingUntilMs: readonly number[];
}

export interface PermitRequest {
  route: string;
  /** The number of requests, at least 1. */
  count: number;
  priority: Priority;
  /** True if requests may have been sent that are not in the log, since the shared log was unavailable. */
  unlogged?: boolean;
  /** How long ago requests were sent that are not in the log, in milliseconds; they are added. */
  sentAgoMs?: readonly number[];
  /** Log entries of the route, in the budget's own time, for which nothing was sent; they are removed. */
  unsent?: readonly number[];
}

export interface PermitGrant {
  /** The instant of the grant in the budget's own time. */
  timeMs: number;
  /** One delay in milliseconds per granted request; fewer than requested, or none, if there is no room now. */
  afterMs: number[];
  /** The pause before requesting the remaining permits, milliseconds. */
  waitMs: number;
  level: number;
  /** See {@link RateBudgetState.beganAtMs}. */
  beganAtMs: number;
  /** Milliseconds since the 429 that led to the level, and until level 0 if no other comes; absent at level 0. */
  learnt?: { agoMs: number; normalInMs: number };
}

/** Requests are granted at most this far ahead, in milliseconds, so that more urgent callers can come first. */
export const BATCH_MS = 250;
/** The share of the second's limit that may be sent at once. The rest is spread over the second, so that delays on the way do not bunch requests. */
export const AT_ONCE_SHARE = 0.25;
/** The share of the minute's limit that may be sent at once at the steady rate. */
export const STEADY_BURST_SHARE = 0.03;
/** A waiting caller asks again after this time, to show that it still waits. */
export const ASK_AGAIN_MS = 1_000;
/** How much longer than announced a caller counts as waiting. */
export const WAITING_SLACK_MS = 250;

/** At this level the steady rate applies; each higher level halves it. */
export const STEADY_LEVEL = 2;
export const HIGHEST_LEVEL = 5;
/** The share of the second's limit that remains from level 1 on. */
export const SECOND_SHARE = 0.75;
/** Answers 429 within this time count as one event: their requests were sent before the first answer. */
export const SAME_EVENT_MS = 2_000;
/** The duration of each level above {@link STEADY_LEVEL}; lower ones last {@link RateBudgetState.probeMs}. */
export const HALVED_MS = MINUTE_MS;
/** The time before a lower level is tried after a first 429, or after a 429 whose cause may be a lost log. */
export const FIRST_PROBE_MS = 5 * MINUTE_MS;
/** The time before a lower level is tried if a 429 has come again; it is doubled if the lower level then leads to another 429. */
export const PROBE_MS = HOUR_MS;
export const LONGEST_PROBE_MS = DAY_MS;
/** The pause after a 429 that names none. */
export const DEFAULT_PAUSE_MS = 1_000;
/** The longest pause after one 429, whatever it asks for. */
export const LONGEST_PAUSE_MS = 5 * MINUTE_MS;

/** An empty log. The steady rate applies for the first minute, since earlier requests are unknown; not if `isUnused` says that there were none. */
export function newRateBudget({ jitterMs }: RateLimits, nowMs: number, isUnused = false): RateBudgetState {
  return {
    beganAtMs: nowMs,
    lastMs: nowMs,
    offsetMs: 0,
    minute: [],
    routes: {},
    steadyAtMs: nowMs,
    unknownUntilMs: isUnused ? nowMs : nowMs + MINUTE_MS + jitterMs,
    level: 0,
    learnedAtMs: 0,
    probeMs: FIRST_PROBE_MS,
    pausedUntilMs: 0,
    waitingUntilMs: PRIORITIES.map(() => 0),
  };
}

/** The budget's own time, which never runs backwards. If the clock is set back, the budget's time is ahead of it from then on. */
function budgetTime({ lastMs, offsetMs }: RateBudgetState, nowMs: number): { timeMs: number; offsetMs: number } {
  const timeMs = Math.max(lastMs, nowMs + offsetMs);
  return { timeMs, offsetMs: timeMs - nowMs };
}

/**
 * The level at an instant of the budget's time. 0: the documented limits. 1: a quarter less per second. 2: also the steady rate. Each
 * level above halves the rate.
 */
export function levelAt({ level, learnedAtMs, probeMs }: RateBudgetState, timeMs: number): number {
  const quietMs = Math.max(0, timeMs - learnedAtMs);
  const halved = Math.max(0, level - STEADY_LEVEL);
  if (quietMs < halved * HALVED_MS) return level - Math.floor(quietMs / HALVED_MS);
  return Math.max(0, level - halved - Math.floor((quietMs - halved * HALVED_MS) / probeMs));
}

function learntAt(state: RateBudgetState, timeMs: number): PermitGrant['learnt'] {
  const { level, learnedAtMs, probeMs } = state;
  if (levelAt(state, timeMs) === 0) return undefined;
  const halved = Math.max(0, level - STEADY_LEVEL);
  const agoMs = Math.max(0, timeMs - learnedAtMs);
  return { agoMs, normalInMs: halved * HALVED_MS + (level - halved) * probeMs - agoMs };
}

/** Describes a level above 0, see {@link levelAt}. */
export function describeLevel(level: number): string {
  if (level < STEADY_LEVEL) return 'a quarter less is sent in a second';
  if (level === STEADY_LEVEL) return 'requests are spread evenly over the minute';
  return `requests are spread evenly, at 1/${2 ** (level - STEADY_LEVEL)} of the rate`;
}

/**
 * The minute's limit for a priority. Patient requests, such as following operations, leave room in the minute for a raise, and for the
 * confirmation or the retry of a write.
 */
function minuteLimitOf({ perMinute }: RateLimits, priority: Priority): number {
  const isPatient = PRIORITIES.indexOf(priority) >= PRIORITIES.indexOf(FIRST_PATIENT);
  return isPatient ? Math.max(1, Math.floor(perMinute * PATIENT_SHARE)) : perMinute;
}

function steadyBurst({ perMinute }: RateLimits): number {
  return Math.ceil(perMinute * STEADY_BURST_SHARE);
}

/** The interval between requests at the steady rate, in milliseconds. */
export function steadyIntervalMs({ perMinute, jitterMs }: RateLimits, level: number): number {
  return ((MINUTE_MS + jitterMs) / perMinute) * 2 ** Math.max(0, level - STEADY_LEVEL);
}

/**
 * Grants as many requests as may be sent within the next {@link BATCH_MS}: at most `perMinute` in any minute, and at most `perRouteSecond` in any
 * second on the route. Both windows are extended by the jitter. Grants none while a more urgent caller waits. Patient requests leave part of the
 * minute free.
 */
export function grant(
  limits: RateLimits,
  before: RateBudgetState,
  nowMs: number,
  { route, count, priority, unlogged = false, sentAgoMs = [], unsent = [] }: PermitRequest,
): PermitGrant & { state: RateBudgetState } {
  const { timeMs, offsetMs } = budgetTime(before, nowMs);
  const minuteMs = MINUTE_MS + limits.jitterMs;
  const level = levelAt(before, timeMs);
  const unknownUntilMs = unlogged ? timeMs + minuteMs : before.unknownUntilMs;
  const sentOnAll = [...before.minute, ...sentAgoMs.map((agoMs) => timeMs - agoMs)].toSorted((a, b) => a - b);
  const minute = instantsAfter(sentOnAll, timeMs - minuteMs);
  const sent = instantsAfter(before.routes[route] ?? [], timeMs - SECOND_MS - limits.jitterMs);
  const removed = unsent.filter((instant) => removeLast(minute, instant) && removeLast(sent, instant)).length;
  const rank = PRIORITIES.indexOf(priority);
  const minuteLimit = minuteLimitOf(limits, priority);
  const urgentUntilMs = Math.max(0, ...before.waitingUntilMs.slice(0, rank));

  const instants: number[] = [];
  let nextMs = Math.max(timeMs, before.pausedUntilMs);
  const isSteady = level >= STEADY_LEVEL || timeMs < unknownUntilMs;
  const stepMs = steadyIntervalMs(limits, level);
  let steadyAtMs = before.steadyAtMs - removed * stepMs;
  // The routes of `sentAgoMs` are unknown: all may have been this one, so a second passes before the next request.
  if (sentAgoMs.length > 0)
    steadyAtMs = Math.max(steadyAtMs, timeMs + SECOND_MS + limits.jitterMs + steadyBurst(limits) * stepMs);
  for (;;) {
    nextMs = Math.max(
      nextMs,
      roomAtMs(minute, minuteLimit, minuteMs),
      routeRoomAtMs(limits, sent, level),
      isSteady ? steadyAtMs - steadyBurst(limits) * stepMs : 0,
    );
    if (instants.length === count || urgentUntilMs > timeMs || nextMs > timeMs + BATCH_MS) break;
    instants.push(nextMs);
    // Another route may already have a later instant; the log must stay ascending, so it records this one as later.
    minute.push(Math.max(nextMs, minute.at(-1) ?? nextMs));
    sent.push(nextMs);
    steadyAtMs = Math.max(steadyAtMs, nextMs) + stepMs;
  }

  const isComplete = instants.length === count;
  const untilMs = urgentUntilMs > timeMs ? urgentUntilMs : nextMs - BATCH_MS / 2;
  const waitMs = isComplete ? 0 : Math.min(ASK_AGAIN_MS, Math.max(1, untilMs - timeMs));
  const waitingUntilMs = before.waitingUntilMs.map((storedMs, index) =>
    index === rank && !isComplete ? Math.max(storedMs, timeMs + waitMs + WAITING_SLACK_MS) : storedMs,
  );
  const learnt = learntAt(before, timeMs);
  return {
    timeMs,
    afterMs: instants.map((instant) => instant - timeMs),
    waitMs,
    level,
    beganAtMs: before.beganAtMs,
    ...(learnt && { learnt }),
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

/** Returns the state after a 429: a pause of `pauseMs`, at most five minutes, and a lower rate from then on. */
export function learn(
  limits: RateLimits,
  before: RateBudgetState,
  nowMs: number,
  pauseMs: number = DEFAULT_PAUSE_MS,
): RateBudgetState {
  const { timeMs, offsetMs } = budgetTime(before, nowMs);
  const levelBefore = levelAt(before, timeMs);
  const isSame = before.level > 0 && timeMs - before.learnedAtMs < SAME_EVENT_MS;
  const level = isSame ? before.level : Math.min(HIGHEST_LEVEL, levelBefore + 1);
  const pausedUntilMs = Math.max(before.pausedUntilMs, timeMs + Math.min(pauseMs, LONGEST_PAUSE_MS));
  return {
    ...before,
    lastMs: timeMs,
    offsetMs,
    level,
    learnedAtMs: isSame ? before.learnedAtMs : timeMs,
    probeMs: isSame ? before.probeMs : probeAfter(before, levelBefore, timeMs),
    pausedUntilMs,
    // No burst is left after a 429.
    steadyAtMs: Math.max(before.steadyAtMs, pausedUntilMs + steadyBurst(limits) * steadyIntervalMs(limits, level)),
  };
}

/**
 * How long the new level lasts: an hour, or twice as long as before if a lower level was just tried without success. It lasts only five minutes
 * after a first 429, which may have a passing cause, and while earlier requests are unknown, as after a loss of the store's data.
 */
function probeAfter(
  { level, learnedAtMs, probeMs, unknownUntilMs }: RateBudgetState,
  levelBefore: number,
  timeMs: number,
): number {
  const isRecent = timeMs - learnedAtMs < 4 * Math.max(PROBE_MS, probeMs);
  const hasProbed = isRecent && levelBefore < Math.min(level, STEADY_LEVEL);
  const isFirst = levelBefore === 0 && !hasProbed;
  if (isFirst || (timeMs < unknownUntilMs && probeMs < PROBE_MS)) return FIRST_PROBE_MS;
  return hasProbed ? Math.min(LONGEST_PROBE_MS, Math.max(PROBE_MS, 2 * probeMs)) : PROBE_MS;
}

function instantsAfter(instants: readonly number[], fromMs: number): number[] {
  return instants.filter((instant) => instant > fromMs);
}

/** Removes the last equal instant; false if there is none. */
function removeLast(instants: number[], instant: number): boolean {
  const at = instants.lastIndexOf(instant);
  if (at >= 0) instants.splice(at, 1);
  return at >= 0;
}

/** The earliest instant at which one more request fits into `limit` per `windowMs`. */
function roomAtMs(instants: readonly number[], limit: number, windowMs: number): number {
  return (instants[instants.length - limit] ?? Number.NEGATIVE_INFINITY) + windowMs;
}

/** The earliest instant at which the route has room for one more; requests beyond {@link AT_ONCE_SHARE} are spread over the second. */
function routeRoomAtMs({ perRouteSecond, jitterMs }: RateLimits, sent: readonly number[], level: number): number {
  const limit = level > 0 ? Math.max(1, Math.floor(perRouteSecond * SECOND_SHARE)) : perRouteSecond;
  const windowMs = SECOND_MS + jitterMs;
  const lastMs = sent.at(-1) ?? Number.NEGATIVE_INFINITY;
  const spreadMs = Math.min(roomAtMs(sent, Math.ceil(limit * AT_ONCE_SHARE), windowMs), lastMs + windowMs / limit);
  return Math.max(lastMs, roomAtMs(sent, limit, windowMs), spreadMs);
}
