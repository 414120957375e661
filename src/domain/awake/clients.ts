/** Names the clients that keep a compute awake, from samples of its Postgres. */
import { DEFAULT_SUSPEND_TIMEOUT_SECONDS } from '../compute/compute.ts';
import { sum } from '../sum.ts';
import { type ClientActivity, type ClientSample, collectActivity, type Visit } from './client-activity.ts';
import { isFrame } from './fingerprint.ts';
import { rhythmsOf } from './visit-period.ts';

/** `periodic`: at a constant interval. `frequent`: at that interval or more often. `long_query`: one query runs on. */
export type ClientKind = 'periodic' | 'frequent' | 'irregular' | 'open_transaction' | 'long_query' | 'replication';

export interface NamedClient {
  kind: ClientKind;
  user: string;
  /** Absent where it is empty or no session showed it. */
  application?: string;
  /** Its queries without values, the most frequent first. */
  queries: { queryId?: string; text: string }[];
  periodMs?: number;
  /** How often it was seen. */
  visits: number;
  /** The share of the sampled time for which it alone would have kept the compute awake, in (0, 1]. */
  share: number;
  confidence: 'high' | 'low';
}

/** Facts about sessions from the compute's Postgres; read on request only (`--ask-postgres`). */
export interface SessionFacts {
  /** The age in milliseconds of the oldest transaction that is open without a query; absent if there is none. */
  idleInTransactionMs?: number;
  replicationConnections: number;
}

/** `time`: all samples were taken. `alone`: nobody else kept it awake any more, so ebb left. */
export type AskedUntil = 'time' | 'alone' | 'asleep' | 'interrupted' | 'failed';

/** What a Postgres has shown of its clients. */
export interface AskedPostgres {
  /** When it was asked last, milliseconds since the epoch. */
  atMs: number;
  clients: NamedClient[];
  sessions: SessionFacts;
  samples: number;
  sampledMs: number;
  /** For how long the samples themselves kept the compute awake. */
  keptAwakeMs: number;
  /** False without `pg_stat_statements`: clients that connect only for a moment may be missing. */
  sawStatements: boolean;
  until: AskedUntil;
}

/** Clients that keep it awake for less of the time are not named. A chosen limit, without a source. */
const MIN_SHARE = 0.05;
const MOST_NAMED = 20;
/** Queries with a share, of which clients are made. */
const MOST_JOINED = 500;
const MOST_QUERIES = 5;
/** Queries of one user belong to one client if so many of their visits coincide. A chosen limit, without a source. */
const COINCIDING = 0.75;
const SAME_PERIOD = 1.15;
/** From so many visits on a client is sure to be one that comes back. */
const SURE_VISITS = 4;

interface Named extends NamedClient {
  activities: ClientActivity[];
}

/** How long the compute stays awake after a client, milliseconds; for one that never suspends, as long as with the platform's default. */
export function awakeAfterMs(suspendTimeoutSeconds: number): number {
  return 1000 * (suspendTimeoutSeconds > 0 ? suspendTimeoutSeconds : DEFAULT_SUSPEND_TIMEOUT_SECONDS);
}

/**
 * Names who kept a compute awake while it was sampled, by the rule of the platform: a running query, an open transaction or a
 * replication connection keeps it awake, and each query for `timeoutMs` after it; a session that is only open doesn't (monitor.rs of
 * neondatabase/neon). `texts` has the statements of `pg_stat_statements` by id, without values. Largest share first.
 */
export function nameClients(asked: {
  samples: readonly ClientSample[];
  texts: ReadonlyMap<string, string>;
  timeoutMs: number;
}): NamedClient[] {
  const { samples, timeoutMs } = asked;
  const [fromMs, toMs] = spanOf(samples);
  if (toMs <= fromMs) return [];
  const span = {
    ...{ fromMs, toMs, resolutionMs: (toMs - fromMs) / (samples.length - 1) },
    countsCalls: samples.some(({ calls }) => calls !== undefined),
  };
  const named = collectActivity(asked).flatMap((activity) => {
    if (activity.kind !== 'queries') return [nameOf({ activity, periodMs: undefined }, { ...span, timeoutMs })];
    const rhythms = rhythmsOf(activity.visits, span);
    return rhythms.map(({ visits, periodMs, isFrequent }) => {
      const named = nameOf({ activity: { ...activity, visits: [...visits] }, periodMs }, { ...span, timeoutMs });
      return isFrequent ? { ...named, kind: 'frequent' as const } : named;
    });
  });
  // Joining compares each with each.
  const largest = named.toSorted((a, b) => b.share - a.share || b.visits - a.visits).slice(0, MOST_JOINED);
  return merged(largest, span.resolutionMs)
    .filter(({ share, queries, kind }) => share >= MIN_SHARE && (kind !== 'irregular' || !queries.every(isFrameQuery)))
    .toSorted((a, b) => b.share - a.share || b.visits - a.visits)
    .slice(0, MOST_NAMED)
    .map(({ activities: _activities, ...client }) => client);
}

function nameOf(
  { activity, periodMs }: { activity: ClientActivity; periodMs: number | undefined },
  span: { fromMs: number; toMs: number; timeoutMs: number },
): Named {
  const { kind, user, application, queryId, text, visits } = activity;
  const period = periodMs === undefined ? {} : { periodMs };
  const calls = sum(visits.map((visit) => visit.calls));
  const ofQueries = periodMs === undefined ? 'irregular' : 'periodic';
  return {
    kind: kind === 'queries' ? ofQueries : kind,
    user,
    ...(application !== '' && { application }),
    queries: text === '' ? [] : [{ ...(queryId !== undefined && { queryId }), text }],
    ...period,
    visits: calls,
    share: coverMs(visits, { ...span, ...period }) / (span.toMs - span.fromMs),
    confidence: kind !== 'queries' || calls >= SURE_VISITS ? 'high' : 'low',
    activities: [activity],
  };
}

/** Facts about sessions from the last sample that saw them. */
export function sessionFacts(samples: readonly ClientSample[]): SessionFacts {
  const { atMs = 0, sessions = [] } = samples.at(-1) ?? {};
  const open = sessions.flatMap(({ state, transactionStartedAtMs }) =>
    state === 'idle_in_transaction' && transactionStartedAtMs !== undefined ? [atMs - transactionStartedAtMs] : [],
  );
  return {
    ...(open.length > 0 && { idleInTransactionMs: Math.max(...open) }),
    replicationConnections: sessions.filter(({ kind }) => kind === 'replication').length,
  };
}

/**
 * For how long the samples themselves kept the compute awake, in milliseconds: the timeouts after them, less those after everybody else's
 * last activity. Nothing, for a compute that never suspends.
 */
export function keptAwakeMs(asked: Parameters<typeof nameClients>[0] & { neverSuspends: boolean }): number {
  const { samples, timeoutMs, neverSuspends } = asked;
  const [fromMs, toMs] = spanOf(samples);
  if (neverSuspends || samples.length === 0) return 0;
  const span = { fromMs, toMs: toMs + timeoutMs, timeoutMs };
  const others = collectActivity(asked).flatMap(({ visits }) => visits);
  const own = samples.map(({ atMs }): Visit => ({ fromMs: atMs, toMs: atMs, calls: 1, unsureMs: 0 }));
  return coverMs([...others, ...own], span) - coverMs(others, span);
}

/** When somebody else was last active, as far as one sample shows; `beforeMs` is the instant of the one before. */
export function lastOthersMs({ atMs, sessions, calls = [] }: ClientSample, beforeMs: number): number {
  const seen = sessions.map(({ state, kind, stateSinceMs }) =>
    state === 'idle' && kind === 'client' ? stateSinceMs : atMs,
  );
  return Math.max(Number.NEGATIVE_INFINITY, ...seen, ...(calls.length > 0 ? [beforeMs] : []));
}

function spanOf(samples: readonly ClientSample[]): [number, number] {
  return [samples[0]?.atMs ?? 0, samples.at(-1)?.atMs ?? 0];
}

function isFrameQuery({ text }: { text: string }): boolean {
  return isFrame(text);
}

/** How much of the span the visits keep the compute awake, each for its length and the timeout. A periodic client also came before it was seen. */
function coverMs(
  visits: readonly Visit[],
  { fromMs, toMs, timeoutMs, periodMs }: { fromMs: number; toMs: number; timeoutMs: number; periodMs?: number },
): number {
  const first = visits.reduce((least, visit) => Math.min(least, visit.fromMs), Number.POSITIVE_INFINITY);
  const before = periodMs !== undefined ? [{ fromMs: first - periodMs, toMs: first - periodMs }] : [];
  let [covered, untilMs] = [0, fromMs];
  for (const visit of [...before, ...visits].toSorted((a, b) => a.fromMs - b.fromMs)) {
    const end = Math.min(toMs, visit.toMs + timeoutMs);
    covered += Math.max(0, end - Math.max(untilMs, visit.fromMs));
    untilMs = Math.max(untilMs, end);
  }
  return covered;
}

/** Joins the queries of one client: those of the same user and application that come together. */
function merged(all: readonly Named[], resolutionMs: number): Named[] {
  const clients: Named[] = [];
  const isLonger = (a: Named, b: Named) =>
    Number(a.queries.every(isFrameQuery)) - Number(b.queries.every(isFrameQuery));
  for (const one of all.toSorted((a, b) => isLonger(a, b) || b.share - a.share || b.visits - a.visits)) {
    const same = clients.find((client) => isSame(client, one, resolutionMs));
    if (!same) {
      clients.push({ ...one });
      continue;
    }
    same.application ??= one.application as string;
    if (same.application === undefined) delete same.application;
    same.queries = [...same.queries, ...one.queries.filter((query) => !isFrameQuery(query))].slice(0, MOST_QUERIES);
    same.share = Math.max(same.share, one.share);
  }
  return clients;
}

function isSame(client: Named, one: Named, resolutionMs: number): boolean {
  const { user, application } = client;
  if (user !== one.user || (application !== one.application && application && one.application)) return false;
  if (client.kind === 'replication' || one.kind === 'replication') return false;
  if (!coincide(client, one, resolutionMs)) return false;
  if (one.queries.every(isFrameQuery)) return true;
  if (client.periodMs === undefined && one.periodMs === undefined) return shareSession(client, one);
  const [a, b] = [client.periodMs ?? 0, one.periodMs ?? 0];
  return Math.max(a, b) <= SAME_PERIOD * Math.min(a, b) && coincide(one, client, resolutionMs);
}

function shareSession(client: Named, one: Named): boolean {
  const sessions = new Set(client.activities.flatMap((activity) => [...activity.sessions]));
  return one.activities.some((activity) => [...activity.sessions].some((session) => sessions.has(session)));
}

/** True if most visits of `one` come with one of `client`. */
function coincide(client: Named, one: Named, resolutionMs: number): boolean {
  const others = client.activities.flatMap(({ visits }) => visits);
  const visits = one.activities.flatMap((activity) => activity.visits);
  const together = visits.filter((visit) =>
    others.some((other) => other.fromMs - resolutionMs <= visit.toMs && visit.fromMs - resolutionMs <= other.toMs),
  );
  return together.length >= COINCIDING * visits.length;
}
