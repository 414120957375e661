import { type Compute, NEVER_SUSPENDS } from '../compute/compute.ts';
import { formatDuration, maySleep } from '../compute/compute-units.ts';
import { exactly, type Range } from '../estimate.ts';
import { sum, toHundredths } from '../sum.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { NamedClient, SessionFacts } from './clients.ts';
import {
  type AwakeHistory,
  type AwakeInterval,
  awakeMs,
  awakeShare,
  historyFrom,
  knownTimeMs,
  lengthMs,
} from './intervals.ts';
import { periodicStarts } from './periodic.ts';
import { type PeriodUse, type UsageWhileAwake, usageWhileAwake } from './usage-while-awake.ts';

/** The length of a month in findings, in hours. */
export const MONTH_HOURS = 730;

// The limits below are chosen tolerances, without a source.
/** With less known time, the log shows no cause. A compute that may sleep then has a finding only if its clients were asked for. */
const MIN_KNOWN_MS = DAY_MS;
/** Only this many intervals are analysed, the newest ones. */
const MAX_INTERVALS = 2_000;
/** Computes with a smaller awake share have no finding. */
const MIN_SHARE = 0.02;
/** An awake interval of this length is longer than a working day. */
const LONG_MS = 20 * HOUR_MS;
/** Visits are short if the timeouts after them are at least this share of the awake time. */
const SHORT_PART = 0.6;
/** Short visits are reported from this many visits a day, and from this awake share, on. */
const [SHORT_VISITS_PER_DAY, SHORT_VISITS_SHARE] = [8, 0.05];
/** A compute is mostly awake from this awake share on. Long intervals are a cause from this part of the awake time on. */
const MOSTLY_AWAKE = 0.5;
/** A busy compute is at its minimum size in less than this share of the measured hours. */
const BUSY_FLAT_SHARE = 0.5;
/** While awake, a busy compute averages at least this factor of its minimum: rare peaks are no load. */
const BUSY_AVERAGE = 1.15;
/** A compute that never suspends is busy if it is at its minimum in less than this share of the hours. */
const ALWAYS_ON_FLAT_SHARE = 0.2;
/** A compute that is at its minimum in this share of the measured hours does next to no work. */
const IDLE_FLAT_SHARE = 0.9;
/** Probes that explain a smaller part of the awake time are not reported as its cause. */
const PROBE_PART = 0.2;
/** The maximum number of clients that evidence names. */
const MAX_CLIENTS = 3;

export type AwakeCause =
  | 'periodic_probe'
  | 'open_transaction'
  | 'replication'
  | 'never_suspends'
  | 'short_visits'
  | 'ebb_itself'
  | 'busy'
  | 'clients'
  | 'unknown';

/** How reliable a figure is; see docs/recommend.md. */
export type Figure = 'measured' | 'replayed' | 'at_least' | 'estimate' | 'unknown';

/** The facts about one compute from which the cause is determined. */
export interface AwakeFacts {
  compute: Compute;
  history: AwakeHistory;
  /** The branch's hourly usage, oldest first; absent if the branch has other computes. */
  hours?: readonly UsageBucket[];
  period?: PeriodUse;
  sessions?: SessionFacts;
  /** The clients that keep the compute awake, the largest share first; read from its Postgres on request only. */
  clients?: readonly NamedClient[];
  /** The interval, in milliseconds, at which ebb queries the compute's Postgres for connections; absent if it does not. */
  queryIntervalMs?: number;
}

export interface AwakeFinding {
  compute: Compute;
  awakeShare: number;
  cause: AwakeCause;
  evidence: string[];
  periodMs?: number;
  /** The cost of the cause, in CU-hours per month of 730 h. */
  cuHoursMonth: Range;
  figure: Figure;
  advice: string;
}

type DetectedCause = Pick<AwakeFinding, 'cause' | 'evidence' | 'periodMs'> & {
  /** The awake time that the cause explains, in milliseconds. */
  dueMs: Range;
};

type CheckInput = AwakeFacts & { share: number; use: UsageWhileAwake };
type Check = (input: CheckInput) => DetectedCause | undefined;

/**
 * Finds what keeps a compute awake. Without clear evidence the cause is `unknown`. Undefined if the compute is only visited occasionally, or
 * if too little is known.
 */
export function findCause({ history: fullHistory, ...rest }: AwakeFacts): AwakeFinding | undefined {
  const history = historyFrom(fullHistory, fullHistory.intervals.at(-MAX_INTERVALS)?.startMs ?? fullHistory.fromMs);
  const { compute, clients = [] } = rest;
  const share = awakeShare(history);
  const knownMs = knownTimeMs(history);
  if (share === undefined || share < MIN_SHARE) return undefined;
  if (knownMs < MIN_KNOWN_MS && maySleep(compute) && clients.length === 0) return undefined;
  const use = usageWhileAwake({ ...rest, history });
  let detected: DetectedCause | undefined;
  const checks = knownMs < MIN_KNOWN_MS ? CHECKS_WITHOUT_LOG : [...CHECKS_WITHOUT_LOG, ...CHECKS_OF_LOG];
  for (const check of checks) detected ??= check({ ...rest, history, share, use });
  const found = withClients(detected, clients, history);
  if (!found) return undefined;
  const { dueMs, ...cause } = found;
  const { averageCu } = use;
  const perMonth = (ms: number) => (ms / knownMs) * MONTH_HOURS;
  const low = perMonth(dueMs.low) * compute.minCu;
  // Without measurements the size while awake is unknown.
  const high = perMonth(dueMs.high) * (averageCu ?? compute.maxCu);
  return {
    compute,
    awakeShare: share,
    ...cause,
    cuHoursMonth: { low: Math.min(low, high), high },
    figure: averageCu === undefined ? 'estimate' : 'measured',
    advice: ADVICE[found.cause],
  };
}

const neverSuspends: Check = (input) => {
  const { compute, history } = input;
  if (maySleep(compute)) return undefined;
  const { flatShare } = input.use;
  const why =
    compute.suspendTimeoutSeconds === NEVER_SUSPENDS
      ? 'its timeout is "never"'
      : `a compute of ${compute.maxCu} CU never suspends`;
  const awake = awakeMs(history);
  if (flatShare === undefined) return { cause: 'never_suspends', evidence: [why], dueMs: { low: 0, high: awake } };
  if (flatShare < ALWAYS_ON_FLAT_SHARE) return busyCause(input);
  const evidence = [why, `${percent(flatShare)} of its hours at the minimum of ${compute.minCu} CU`];
  return { cause: 'never_suspends', evidence, dueMs: exactly(awake * flatShare) };
};

const openTransaction: Check = ({ sessions, compute, history }) => {
  const openMs = sessions?.idleInTransactionMs ?? 0;
  if (openMs < 1000 * compute.suspendTimeoutSeconds) return undefined;
  const evidence = [`a session has been idle in a transaction for ${duration(openMs)}`];
  return { cause: 'open_transaction', evidence, dueMs: exactly(Math.min(openMs, awakeMs(history))) };
};

const replication: Check = ({ sessions, history }) => {
  const count = sessions?.replicationConnections ?? 0;
  if (count === 0) return undefined;
  const evidence = [`${count} replication ${count === 1 ? 'connection' : 'connections'}`];
  return { cause: 'replication', evidence, dueMs: exactly(longIntervalsMs(history)) };
};

const ebbItself: Check = ({ queryIntervalMs, compute, history }) => {
  if (queryIntervalMs === undefined || queryIntervalMs >= 1000 * compute.suspendTimeoutSeconds) return undefined;
  if (longIntervalsMs(history) < MOSTLY_AWAKE * awakeMs(history)) return undefined;
  const evidence = [
    `a source of ebb asks it every ${duration(queryIntervalMs)}, its timeout is ${duration(1000 * compute.suspendTimeoutSeconds)}`,
  ];
  return { cause: 'ebb_itself', evidence, dueMs: { low: 0, high: longIntervalsMs(history) } };
};

/** Detects awake intervals that are longer than any working day. */
const longIntervals: Check = (input) => {
  const { history, compute } = input;
  const long = longIntervalsMs(history);
  if (long < MOSTLY_AWAKE * awakeMs(history)) return undefined;
  if (isBusy(input)) return busyCause(input);
  const longest = Math.max(...history.intervals.map(lengthMs));
  const evidence = [`awake for ${duration(longest)} without a pause`];
  const { flatShare = 0 } = input.use;
  if (flatShare >= IDLE_FLAT_SHARE) {
    evidence.push(`${percent(flatShare)} of its hours at the minimum of ${compute.minCu} CU: next to no work`);
  }
  return { cause: 'unknown', evidence, dueMs: { low: 0, high: long } };
};

const periodicProbe: Check = ({ history, compute, share }) => {
  const found = periodicStarts(history);
  if (!found || !areShortVisits(found.intervals, compute)) return undefined;
  const due = sum(found.intervals.map(lengthMs));
  const dueShare = (due / awakeMs(history)) * share;
  if (dueShare < MIN_SHARE || due < PROBE_PART * awakeMs(history)) return undefined;
  const evidence = [
    `${found.intervals.length} of ${startsOf(history).length} starts come ${duration(found.periodMs)} after another one`,
    `each keeps it awake for the timeout of ${duration(1000 * compute.suspendTimeoutSeconds)}`,
  ];
  return { cause: 'periodic_probe', evidence, periodMs: found.periodMs, dueMs: exactly(due) };
};

const shortVisits: Check = ({ history, compute, share }) => {
  const starts = startsOf(history);
  const days = knownTimeMs(history) / DAY_MS;
  if (share < SHORT_VISITS_SHARE || starts.length < SHORT_VISITS_PER_DAY * days) return undefined;
  const timeoutsMs = timeoutMsOf(starts, compute);
  if (timeoutsMs < SHORT_PART * awakeMs(history)) return undefined;
  const evidence = [
    `${Math.round(starts.length / days)} visits a day`,
    `${percent(timeoutsMs / awakeMs(history))} of the time awake is the timeout after them`,
  ];
  return { cause: 'short_visits', evidence, dueMs: exactly(timeoutsMs) };
};

const mostlyAwake: Check = (input) => {
  const { share, history } = input;
  if (share < MOSTLY_AWAKE) return undefined;
  if (isBusy(input)) return busyCause(input);
  const evidence = [`awake ${percent(share)} of the time`];
  return { cause: 'unknown', evidence, dueMs: { low: 0, high: awakeMs(history) } };
};

/** Names the asked clients as the cause if the checks found no other. */
function withClients(
  found: DetectedCause | undefined,
  clients: readonly NamedClient[],
  history: AwakeHistory,
): DetectedCause | undefined {
  const [first] = clients;
  if (first === undefined || (found && found.cause !== 'unknown')) return found;
  const period = first.periodMs === undefined ? {} : { periodMs: first.periodMs };
  const dueMs = found?.dueMs ?? { low: 0, high: awakeMs(history) };
  return { cause: 'clients', evidence: clients.slice(0, MAX_CLIENTS).map(clientText), ...period, dueMs };
}

/** A client in words: `asks every 4m: user app, application web, SELECT ?`. */
export function clientText({ kind, user, application, queries, periodMs, visits }: NamedClient): string {
  const [query] = queries;
  const behaviour = {
    periodic: `asks every ${duration(periodMs ?? 0)}`,
    frequent: `asks every ${duration(periodMs ?? 0)} or more often`,
    irregular: visits === 1 ? 'asked once' : `asked ${visits} times, not at a fixed interval`,
    open_transaction: 'holds a transaction open',
    long_query: 'runs one query for long',
    replication: 'replicates',
  }[kind];
  return `${behaviour}: ${[`user ${user}`, application && `application ${application}`, query?.text].filter(Boolean).join(', ')}`;
}

/** The first check that finds a cause counts. */
const CHECKS_WITHOUT_LOG: readonly Check[] = [neverSuspends, openTransaction, replication];
const CHECKS_OF_LOG: readonly Check[] = [ebbItself, longIntervals, periodicProbe, shortVisits, mostlyAwake];

/** True if the compute is above its minimum for much of the time, so that clients keep it busy. */
function isBusy({ use: { flatShare, averageCu = 0 }, compute }: CheckInput): boolean {
  return flatShare !== undefined && flatShare < BUSY_FLAT_SHARE && averageCu >= BUSY_AVERAGE * compute.minCu;
}

function busyCause({ compute, history, use: { averageCu = 0 } }: CheckInput): DetectedCause {
  const evidence = [`${toHundredths(averageCu)} CU on average while awake, its minimum is ${compute.minCu}`];
  return { cause: 'busy', evidence, dueMs: exactly(awakeMs(history)) };
}

function startsOf({ intervals }: AwakeHistory): AwakeInterval[] {
  return intervals.filter(({ start }) => start === 'client');
}

function areShortVisits(intervals: readonly AwakeInterval[], compute: Compute): boolean {
  return timeoutMsOf(intervals, compute) >= SHORT_PART * sum(intervals.map(lengthMs));
}

/** The total idle time at the end of intervals, at most one timeout each, in milliseconds. */
function timeoutMsOf(intervals: readonly AwakeInterval[], { suspendTimeoutSeconds }: Compute): number {
  const timedOut = intervals.filter(({ end }) => end === 'timeout');
  return sum(timedOut.map((one) => Math.min(lengthMs(one), 1000 * suspendTimeoutSeconds)));
}

/** The total length of the intervals that are longer than a working day, in milliseconds. */
function longIntervalsMs({ intervals }: AwakeHistory): number {
  return sum(intervals.map(lengthMs).filter((ms) => ms >= LONG_MS));
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

/** A rounded duration as policies write it. */
function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 600) return formatDuration(seconds);
  return formatDuration(seconds < 48 * 3600 ? Math.round(seconds / 60) * 60 : Math.round(seconds / 3600) * 3600);
}

const ADVICE: Readonly<Record<AwakeCause, string>> = {
  periodic_probe:
    'find the client that comes at this interval (a health check, a cron job, a monitor); let it ask less often, or point it at something other than the database',
  open_transaction: 'end the session, and set idle_in_transaction_session_timeout',
  replication:
    'a subscriber keeps it awake for ever: drop the subscription if nobody needs it, or leave the timeout at never and choose a small minimum',
  never_suspends: 'set a timeout, or a schedule that lets it sleep outside working hours',
  short_visits: 'a shorter timeout, or fewer visits: batch them, or put a cache in front',
  ebb_itself: 'raise "every" of the source above the timeout, or count connections with Prometheus',
  clients: 'let them ask less often than the timeout, or point them at something other than the database',
  busy: 'it works: the minimum and the maximum matter here, not the timeout',
  unknown:
    'ebb awake --ask-postgres names the client; or look at pg_stat_activity and pg_stat_replication while it is awake: an open transaction, a replication connection, or a client that asks more often than the timeout',
};
