import { type Compute, NEVER_SUSPENDS } from '../compute/compute.ts';
import { formatDuration, maySleep } from '../compute/compute-units.ts';
import type { Range } from '../estimate.ts';
import { sum } from '../sum.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { NamedClient, SessionFacts } from './clients.ts';
import { type AwakeHistory, type AwakeInterval, awakeMs, awakeShare, within } from './intervals.ts';
import { periodicStarts } from './periodic.ts';
import { usageWhileAwake } from './usage-while-awake.ts';

/** The length of a month in findings, in hours. */
export const MONTH_HOURS = 730;

/** With less known time, only causes that follow from the settings are reported. */
const MIN_KNOWN_MS = DAY_MS;
/** The maximum number of intervals to analyse, the newest ones. */
const MAX_INTERVALS = 2_000;
/** Computes with a smaller awake share have no finding. */
const MIN_SHARE = 0.02;
/** An awake interval of this length is longer than a working day. */
const LONG_MS = 20 * HOUR_MS;
/** Visits are short if the timeouts after them are at least this share of the awake time. */
const SHORT_PART = 0.6;
const SHORT_VISITS_A_DAY = 8;
const SHORT_VISITS_SHARE = 0.05;
const MOSTLY_AWAKE = 0.5;
/** A busy compute is at its minimum size in less than this share of the measured hours: it is above it in most of them. */
const BUSY_FLAT_SHARE = 0.5;
/** While awake, a busy compute averages at least this factor of its minimum. A chosen tolerance, without a source: rare peaks are no load. */
const BUSY_AVERAGE = 1.15;
/** A compute that never suspends is busy if it is at its minimum in less than this share of the hours. A chosen limit, without a source. */
const ALWAYS_ON_FLAT_SHARE = 0.2;
/** A compute that is at its minimum in this share of the measured hours does next to no work. A chosen limit, without a source. */
const IDLE_FLAT_SHARE = 0.9;
/** Probes that explain a smaller part of the awake time are not reported as its cause. A chosen limit, without a source. */
const PROBE_PART = 0.2;
/** Evidence names so many clients. */
const MOST_CLIENTS = 3;

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
  sessions?: SessionFacts;
  /** Who keeps it awake, as its Postgres has shown, those that keep it awake most first; read on request only. */
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

/**
 * Finds why a compute is awake far more than its clients explain; undefined if it is not, or if too little is known. Without clear
 * evidence the cause is `unknown`.
 */
export function findCause({ history: fullHistory, ...rest }: AwakeFacts): AwakeFinding | undefined {
  const history = within(fullHistory, fullHistory.intervals.at(-MAX_INTERVALS)?.startMs ?? fullHistory.fromMs);
  const facts = { ...rest, history };
  const { compute, clients = [] } = facts;
  const share = awakeShare(history);
  const knownMs = knownMsOf(history);
  if (share === undefined || share < MIN_SHARE) return undefined;
  if (knownMs < MIN_KNOWN_MS && maySleep(compute) && clients.length === 0) return undefined;
  const logged = CHECKS.reduce<DetectedCause | undefined>((before, check) => before ?? check(facts, share), undefined);
  const found = withClients(logged, facts);
  if (!found) return undefined;
  const { dueMs, ...cause } = found;
  const { averageCu } = usageWhileAwake(facts);
  const perMonth = (ms: number) => (ms / knownMs) * MONTH_HOURS;
  const low = perMonth(dueMs.low) * compute.minCu;
  // Without measurements the size while awake is unknown.
  const high = perMonth(dueMs.high) * (averageCu ?? compute.maxCu);
  return {
    ...{ compute, awakeShare: share, ...cause },
    cuHoursMonth: { low: Math.min(low, high), high },
    figure: averageCu === undefined ? 'estimate' : 'measured',
    advice: ADVICE[found.cause],
  };
}

type Check = (facts: AwakeFacts, share: number) => DetectedCause | undefined;

function knownMsOf({ fromMs, toMs, unknown }: AwakeHistory): number {
  return toMs - fromMs - unknown.reduce((sum, one) => sum + one.toMs - one.fromMs, 0);
}

function exactly(ms: number): Range {
  return { low: ms, high: ms };
}

const neverSuspends: Check = (facts) => {
  const { compute, history } = facts;
  if (maySleep(compute)) return undefined;
  const { flatShare, averageCu } = usageWhileAwake(facts);
  const why =
    compute.suspendTimeoutSeconds === NEVER_SUSPENDS
      ? 'its timeout is "never"'
      : `a compute of ${compute.maxCu} CU never suspends`;
  const awake = awakeMs(history);
  if (flatShare === undefined) return { cause: 'never_suspends', evidence: [why], dueMs: { low: 0, high: awake } };
  if (flatShare < ALWAYS_ON_FLAT_SHARE) return busyWith(facts, averageCu);
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
  return { cause: 'replication', evidence, dueMs: exactly(longMs(history)) };
};

const ebbItself: Check = ({ queryIntervalMs, compute, history }) => {
  if (queryIntervalMs === undefined || queryIntervalMs >= 1000 * compute.suspendTimeoutSeconds) return undefined;
  if (longMs(history) < MOSTLY_AWAKE * awakeMs(history)) return undefined;
  const evidence = [
    `a source of ebb asks it every ${duration(queryIntervalMs)}, its timeout is ${duration(1000 * compute.suspendTimeoutSeconds)}`,
  ];
  return { cause: 'ebb_itself', evidence, dueMs: { low: 0, high: longMs(history) } };
};

/** Detects awake intervals that are longer than any working day. */
const longIntervals: Check = (facts) => {
  const { history, compute } = facts;
  const long = longMs(history);
  if (long < MOSTLY_AWAKE * awakeMs(history)) return undefined;
  const { flatShare, averageCu } = usageWhileAwake(facts);
  if (isBusy(facts)) return busyWith(facts, averageCu);
  const longest = Math.max(...history.intervals.map(lengthOf));
  const evidence = [`awake for ${duration(longest)} without a pause`];
  if ((flatShare ?? 0) >= IDLE_FLAT_SHARE) {
    evidence.push(`${percent(flatShare ?? 0)} of its hours at the minimum of ${compute.minCu} CU: next to no work`);
  }
  return { cause: 'unknown', evidence, dueMs: { low: 0, high: long } };
};

const periodicProbe: Check = ({ history, compute }, share) => {
  const found = periodicStarts(history);
  if (!found || !areShort(found.intervals, compute)) return undefined;
  const due = sum(found.intervals.map(lengthOf));
  const dueShare = (due / awakeMs(history)) * share;
  if (dueShare < MIN_SHARE || due < PROBE_PART * awakeMs(history)) return undefined;
  const evidence = [
    `${found.intervals.length} of ${startsOf(history).length} starts come ${duration(found.periodMs)} after another`,
    `each keeps it awake for the timeout of ${duration(1000 * compute.suspendTimeoutSeconds)}`,
  ];
  return { cause: 'periodic_probe', evidence, periodMs: found.periodMs, dueMs: exactly(due) };
};

const shortVisits: Check = ({ history, compute }, share) => {
  const starts = startsOf(history);
  const days = knownMsOf(history) / DAY_MS;
  if (share < SHORT_VISITS_SHARE || starts.length < SHORT_VISITS_A_DAY * days) return undefined;
  const timeoutsMs = timeoutMsOf(starts, compute);
  if (timeoutsMs < SHORT_PART * awakeMs(history)) return undefined;
  const evidence = [
    `${Math.round(starts.length / days)} visits a day`,
    `${percent(timeoutsMs / awakeMs(history))} of the time awake is the timeout after them`,
  ];
  return { cause: 'short_visits', evidence, dueMs: exactly(timeoutsMs) };
};

const mostlyAwake: Check = (facts, share) => {
  const { averageCu } = usageWhileAwake(facts);
  if (share < MOSTLY_AWAKE) return undefined;
  if (isBusy(facts)) return busyWith(facts, averageCu);
  return {
    cause: 'unknown',
    evidence: [`awake ${percent(share)} of the time`],
    dueMs: { low: 0, high: awakeMs(facts.history) },
  };
};

/** Clients that were seen explain what the log leaves open. */
function withClients(
  found: DetectedCause | undefined,
  { clients = [], history }: AwakeFacts,
): DetectedCause | undefined {
  const [first] = clients;
  if (first === undefined || (found && found.cause !== 'unknown')) return found;
  const period = first.periodMs === undefined ? {} : { periodMs: first.periodMs };
  const dueMs = found?.dueMs ?? { low: 0, high: awakeMs(history) };
  return { cause: 'clients', evidence: clients.slice(0, MOST_CLIENTS).map(clientText), ...period, dueMs };
}

/** A client in words: `asks every 4m: user app, application web, SELECT ?`. */
export function clientText({ kind, user, application, queries, periodMs, visits }: NamedClient): string {
  const [query] = queries;
  const what = {
    periodic: `asks every ${duration(periodMs ?? 0)}`,
    frequent: `asks every ${duration(periodMs ?? 0)} or more often`,
    irregular: visits === 1 ? 'asked once' : `asked ${visits} times, not at a fixed interval`,
    open_transaction: 'holds a transaction open',
    long_query: 'runs one query for long',
    replication: 'replicates',
  }[kind];
  return `${what}: ${[`user ${user}`, application && `application ${application}`, query?.text].filter(Boolean).join(', ')}`;
}

const CHECKS: readonly Check[] = [
  ...[neverSuspends, openTransaction, replication, ebbItself],
  ...[longIntervals, periodicProbe, shortVisits, mostlyAwake],
];

/** True if the compute is above its minimum for much of the time, so that clients keep it busy. */
function isBusy(facts: AwakeFacts): boolean {
  const { flatShare, averageCu } = usageWhileAwake(facts);
  const isAboveMinimum = (averageCu ?? 0) >= BUSY_AVERAGE * facts.compute.minCu;
  return flatShare !== undefined && flatShare < BUSY_FLAT_SHARE && isAboveMinimum;
}

function busyWith({ compute, history }: AwakeFacts, averageCu: number | undefined): DetectedCause {
  const evidence = [`${round(averageCu ?? 0)} CU on average while awake, its minimum is ${compute.minCu}`];
  return { cause: 'busy', evidence, dueMs: exactly(awakeMs(history)) };
}

function startsOf({ intervals }: AwakeHistory): AwakeInterval[] {
  return intervals.filter(({ start }) => start === 'client');
}

function areShort(intervals: readonly AwakeInterval[], compute: Compute): boolean {
  return timeoutMsOf(intervals, compute) >= SHORT_PART * sum(intervals.map(lengthOf));
}

/** The total idle time at the end of intervals, at most one timeout each, in milliseconds. */
function timeoutMsOf(intervals: readonly AwakeInterval[], { suspendTimeoutSeconds }: Compute): number {
  return sum(
    intervals.map((one) => (one.end === 'timeout' ? Math.min(lengthOf(one), 1000 * suspendTimeoutSeconds) : 0)),
  );
}

function longMs({ intervals }: AwakeHistory): number {
  return sum(intervals.map(lengthOf).filter((ms) => ms >= LONG_MS));
}

function lengthOf({ startMs, endMs }: AwakeInterval): number {
  return endMs - startMs;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
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
