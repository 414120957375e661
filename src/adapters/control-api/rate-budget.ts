import {
  ASK_AGAIN_MS,
  LONGEST_PAUSE_MS,
  type PermitGrant,
  type PermitRequest,
  PRIORITIES,
} from '../../domain/rate-budget/grant.ts';
import { DEFAULT_RATE_LIMITS } from '../../domain/rate-budget/limits.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { BudgetRequest, Grant, RateBudget, WaitingRequests } from '../../ports/rate-budget.ts';

/** The log of each account's requests: in this process, or shared. */
export interface BudgetStore {
  grant(account: string, wanted: PermitRequest): Promise<PermitGrant>;
  /** Notes a 429: nothing is granted for `pauseMs` (5 minutes at most), and less from then on. Returns the new level; see `levelAt`. */
  learn(account: string, pauseMs: number | undefined): Promise<number>;
}

type Request = Omit<BudgetRequest, 'account'>;

interface Waiter extends Request {
  sinceMs: number;
  resolve(grant: Grant): void;
  reject(reason: unknown): void;
}

type BudgetClock = Pick<Clock, 'monotonicMs' | 'wait'>;

/** A grant to send one request on a route. Instants are in monotonic time, except `loggedMs`. */
interface Slot {
  route: string;
  fromMs: number;
  /** The latest instant to send it: later, it would come too close to the requests that follow. */
  untilMs: number;
  /** The time of its entry in the log, by the clock of the log. */
  loggedMs: number;
}

/** The waiting requests of an account. */
interface Line {
  account: string;
  budgets: BudgetStore;
  clock: BudgetClock;
  waiters: Waiter[];
  isServing: boolean;
  /** A more urgent request has arrived: grants are asked for at once, without the pause. */
  isHurried: boolean;
  /** Ends the pause. */
  pausing: AbortController;
  /** The log entries of grants that were not used: their times by the clock of the log, by route. */
  unsent: Map<string, number[]>;
  pausedUntilMs: number;
  /** True if the last answer has granted nothing for a second or longer. */
  isFull: boolean;
  /** When requests began to wait without any answer but 429. */
  stalledSinceMs: number | undefined;
  /** When a request last joined the line. */
  wantedAtMs: number;
  /** Send times of the last minute's requests. */
  sentMs: number[];
  level: number;
  /** In monotonic time: when the 429 came that led to the level, and when the level is 0 again if no other comes. Undefined at level 0. */
  learntAt: { sinceMs: number; normalAtMs: number } | undefined;
  /** Incremented before and after a 429 lowers the limit. */
  limitChanges: number;
}

/** The most grants that are asked for at once, and the most unused ones that are remembered. Grants reach only BATCH_MS (250 ms) ahead. */
const MAX_AT_ONCE = 1_000;

/** How late a request may be sent after its grant: half of the jitter that the limits allow. The other half is left to the network. */
const LATE_MS = DEFAULT_RATE_LIMITS.jitterMs / 2;

/**
 * A rate budget that counts requests in a log. Requests of one account wait in one line: the most urgent first, then those whose last grant
 * was too late, then by arrival. The line asks for grants, not each waiter; a grant goes to the request that is first when it arrives.
 */
export function createRateBudget(options: { budgets: BudgetStore; perMinute: number; clock: BudgetClock }): RateBudget {
  const { budgets, perMinute, clock } = options;
  const lines = new Map<string, Line>();

  function lineOf(account: string): Line {
    const line = lines.get(account) ?? newLine({ account, budgets, clock });
    lines.set(account, line);
    return line;
  }

  return {
    acquire: ({ account, ...request }, signal) => enter(lineOf(account), request, signal),
    async throttled(account, retryAfterMs) {
      const line = lineOf(account);
      const pauseMs = Math.min(retryAfterMs ?? 0, LONGEST_PAUSE_MS);
      line.pausedUntilMs = Math.max(line.pausedUntilMs, clock.monotonicMs() + pauseMs);
      line.limitChanges += 1;
      line.level = await budgets.learn(account, retryAfterMs);
      line.limitChanges += 1;
    },
    answered(account) {
      lineOf(account).stalledSinceMs = undefined;
    },
    stalledMs(account) {
      const line = lineOf(account);
      const nowMs = clock.monotonicMs();
      // A caller that gave up, and has asked for nothing for longer than any pause, is not stalled.
      if (nowMs - line.wantedAtMs > LONGEST_PAUSE_MS) line.stalledSinceMs = undefined;
      return nowMs - (line.stalledSinceMs ?? nowMs);
    },
    waiting: (account) => waitingIn(lineOf(account), perMinute),
    usedRatio: (account) => recent(lineOf(account), clock.monotonicMs()).length / perMinute,
    level: (account) => lineOf(account).level,
    learnt(account) {
      const { learntAt } = lineOf(account);
      const nowMs = clock.monotonicMs();
      if (!learntAt || learntAt.normalAtMs <= nowMs) return undefined;
      return { agoMs: nowMs - learntAt.sinceMs, normalInMs: learntAt.normalAtMs - nowMs };
    },
  };
}

function enter(line: Line, request: Request, signal: AbortSignal): Promise<Grant> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const leave = () => {
      line.waiters = line.waiters.filter((other) => other !== waiter);
      reject(signal.reason);
    };
    const stopListening = () => signal.removeEventListener('abort', leave);
    const sinceMs = line.clock.monotonicMs();
    const waiter: Waiter = {
      ...request,
      sinceMs,
      resolve(grant) {
        stopListening();
        resolve(grant);
      },
      reject(reason) {
        stopListening();
        reject(reason);
      },
    };
    if (request.isAgain || isFirst(waiter, line.waiters)) hurry(line);
    if (request.isAgain) line.waiters.unshift(waiter);
    else line.waiters.push(waiter);
    line.wantedAtMs = sinceMs;
    line.stalledSinceMs ??= sinceMs;
    signal.addEventListener('abort', leave, { once: true });
    if (!line.isServing) void serve(line);
  });
}

async function serve(line: Line): Promise<void> {
  line.isServing = true;
  try {
    // Requests of the same tick are asked for together.
    await Promise.resolve();
    while (line.waiters.length > 0) {
      line.isHurried = false;
      const waitsMs = await Promise.all(mostUrgent(line.waiters).map((wanted) => ask(line, wanted)));
      const waitMs = Math.min(...waitsMs);
      if (waitMs < Number.POSITIVE_INFINITY && !line.isHurried) await pauseUntilHurried(line, waitMs);
    }
  } catch (error) {
    for (const waiter of line.waiters.splice(0)) waiter.reject(error);
  } finally {
    line.isServing = false;
  }
}

/** Asks for grants and hands them out. Returns the milliseconds until more should be asked for; infinite if there were enough. */
async function ask(line: Line, wanted: PermitRequest): Promise<number> {
  const { limitChanges, account, budgets, unsent } = line;
  const { route } = wanted;
  const count = Math.min(wanted.count, MAX_AT_ONCE);
  const dropped = unsent.get(route) ?? [];
  unsent.delete(route);
  const askedMs = line.clock.monotonicMs();
  const granted = await budgets.grant(account, { ...wanted, count, ...(dropped.length > 0 && { unsent: dropped }) });
  const answeredMs = line.clock.monotonicMs();
  line.isFull = granted.afterMs.length === 0 && granted.waitMs >= ASK_AGAIN_MS;
  // If the limit was lowered meanwhile, the answer may have the level before.
  if (line.limitChanges === limitChanges) {
    line.level = granted.level;
    line.learntAt = granted.learnt && {
      sinceMs: answeredMs - granted.learnt.agoMs,
      normalAtMs: answeredMs + granted.learnt.normalInMs,
    };
  }
  // After a 429 earlier grants are dropped, since the service refuses requests at this rate.
  const isRefused = line.pausedUntilMs > answeredMs;
  for (const afterMs of granted.afterMs) {
    // `afterMs` counts from some instant between `askedMs` and `answeredMs`: the slot is certain for both.
    const times = { fromMs: answeredMs + afterMs, untilMs: askedMs + afterMs + LATE_MS };
    const slot = { route, ...times, loggedMs: granted.timeMs + afterMs };
    if (isRefused) drop(line, slot);
    else handOut(line, slot);
  }
  return isRefused || granted.afterMs.length < wanted.count ? Math.max(1, granted.waitMs) : Number.POSITIVE_INFINITY;
}

/** Gives a slot to the first caller that waits for its route, before the slot begins, so that the request can be prepared. */
function handOut(line: Line, slot: Slot): void {
  const waiter = takeFirst(line, slot.route);
  if (waiter === undefined) drop(line, slot);
  waiter?.resolve({
    waitedMs: Math.max(line.clock.monotonicMs(), slot.fromMs) - waiter.sinceMs,
    waitUntilDue: (signal, options) => waitUntilDue(line, slot, signal, options),
    giveBack: () => (line.clock.monotonicMs() > slot.untilMs ? drop(line, slot) : handOut(line, slot)),
  });
}

async function waitUntilDue(
  line: Line,
  slot: Slot,
  signal: AbortSignal,
  { evenIfLate = false }: { evenIfLate?: boolean } = {},
): Promise<boolean> {
  await pause(line, slot.fromMs - line.clock.monotonicMs(), signal).catch(() => {});
  const nowMs = line.clock.monotonicMs();
  const isUsable = !signal.aborted && line.pausedUntilMs <= nowMs && (evenIfLate || nowMs <= slot.untilMs);
  if (isUsable) recent(line, nowMs).push(nowMs);
  else drop(line, slot);
  signal.throwIfAborted();
  return isUsable;
}

/** Notes an unused slot, which the next request for grants of its route removes from the log. */
function drop({ unsent }: Line, { route, loggedMs }: Slot): void {
  unsent.set(route, [...(unsent.get(route) ?? []), loggedMs].slice(-MAX_AT_ONCE));
}

function newLine(about: Pick<Line, 'account' | 'budgets' | 'clock'>): Line {
  return {
    ...about,
    waiters: [],
    isServing: false,
    isHurried: false,
    pausing: new AbortController(),
    unsent: new Map(),
    pausedUntilMs: 0,
    isFull: false,
    stalledSinceMs: undefined,
    wantedAtMs: 0,
    sentMs: [],
    level: 0,
    learntAt: undefined,
    limitChanges: 0,
  };
}

/**
 * Describes the waiting requests; undefined if none waits, or the limit has room. A request makes room for another a minute after it was sent,
 * first for a waiting write, which in turn makes room a minute later.
 */
function waitingIn(line: Line, perMinute: number): WaitingRequests | undefined {
  const { waiters, isFull, clock, pausedUntilMs } = line;
  if (!isFull || waiters.length === 0) return undefined;
  const nowMs = clock.monotonicMs();
  const writes = waiters.filter((waiter) => rankOf(waiter) < PRIORITIES.indexOf('read')).length;
  const before = (writes || waiters.length) - 1;
  const sentMs = recent(line, nowMs);
  const leavesMs = sentMs[Math.min(before % perMinute, sentMs.length - 1)] ?? nowMs;
  const freedAtMs = leavesMs + MINUTE_MS * (1 + Math.floor(before / perMinute));
  return {
    writes,
    reads: waiters.length - writes,
    perMinute,
    waitedMs: nowMs - Math.min(...waiters.map(({ sinceMs }) => sinceMs)),
    inMs: Math.max(pausedUntilMs, freedAtMs) - nowMs,
  };
}

function rankOf({ priority }: Pick<BudgetRequest, 'priority'>): number {
  return PRIORITIES.indexOf(priority);
}

/** True if no other request is more urgent, or equally urgent on the same route. */
function isFirst(waiter: Waiter, others: readonly Waiter[]): boolean {
  const rank = rankOf(waiter);
  return others.every((other) => rankOf(other) > rank || (rankOf(other) === rank && other.route !== waiter.route));
}

/** The reason of a pause that ends early. Without one, each call of `abort` would create an error with a stack. */
const HURRIED = 'somebody more urgent has come';

function hurry(line: Line): void {
  line.isHurried = true;
  line.pausing.abort(HURRIED);
}

/** The most urgent requests, counted by route, the smallest group first: many may wait for the same page of a list. */
function mostUrgent(waiters: readonly Waiter[]): PermitRequest[] {
  const rank = Math.min(...waiters.map(rankOf));
  const wanted = new Map<string, PermitRequest>();
  for (const { route, priority } of waiters.filter((waiter) => rankOf(waiter) === rank)) {
    wanted.set(route, { route, priority, count: (wanted.get(route)?.count ?? 0) + 1 });
  }
  return [...wanted.values()].toSorted((a, b) => a.count - b.count);
}

/** Removes and returns the most urgent waiter of a route. */
function takeFirst(line: Line, route: string): Waiter | undefined {
  let first: Waiter | undefined;
  for (const waiter of line.waiters) {
    if (waiter.route === route && (first === undefined || rankOf(waiter) < rankOf(first))) first = waiter;
  }
  if (first) line.waiters.splice(line.waiters.indexOf(first), 1);
  return first;
}

/** Send times of the last minute's requests; drops older ones. */
function recent({ sentMs }: Line, nowMs: number): number[] {
  const sinceMs = nowMs - MINUTE_MS;
  while ((sentMs[0] ?? sinceMs) < sinceMs) sentMs.shift();
  return sentMs;
}

async function pauseUntilHurried(line: Line, waitMs: number): Promise<void> {
  line.pausing = new AbortController();
  await pause(line, waitMs, line.pausing.signal).catch(() => {});
}

/** Doesn't keep the process alive; the deadline of each waiting call does. */
async function pause({ clock }: Line, ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await clock.wait(ms, signal, { ref: false });
}
