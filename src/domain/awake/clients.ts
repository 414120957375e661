/** Names the clients that keep a compute awake, from samples of its Postgres. */
import { DEFAULT_SUSPEND_TIMEOUT_SECONDS } from '../compute/compute.ts';
import { sum } from '../sum.ts';
import {
  type ClientActivity,
  type ClientSample,
  collectActivity,
  type SampledPostgres,
  type Visit,
} from './client-activity.ts';
import { isFrame } from './fingerprint.ts';
import { rhythmsOf } from './visit-period.ts';

export interface NamedClient {
  /** `periodic`: at a constant interval. `frequent`: at `periodMs` or more often. */
  kind: 'periodic' | 'frequent' | 'irregular' | 'open_transaction' | 'long_query' | 'replication';
  user: string;
  /** Absent if the client gives none, or if no session showed the client. */
  application?: string;
  /** Its queries without values, the most frequent first. */
  queries: { queryId?: string; text: string }[];
  periodMs?: number;
  visits: number;
  /** The share of the sampled time, in (0, 1], in which this client alone would have kept the compute awake. */
  share: number;
  confidence: 'high' | 'low';
}

/** Facts about sessions from the compute's Postgres; read on request only (`--ask-postgres`). */
export interface SessionFacts {
  /** The age in milliseconds of the oldest transaction that is open without a query; absent if there is none. */
  idleInTransactionMs?: number;
  replicationConnections: number;
}

/** Why sampling ended. `time`: all samples were taken. `alone`: only ebb kept the compute awake. */
export type AskedUntil = 'time' | 'alone' | 'asleep' | 'interrupted' | 'failed';

/** The clients of a Postgres, from samples. */
export interface AskedPostgres {
  /** The instant of the last sample, milliseconds since the epoch. */
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

// The limits below are chosen, without a source.
/** Clients that keep the compute awake for a smaller share of the time are not named. */
const MIN_SHARE = 0.05;
const MAX_CLIENTS = 20;
/** The maximum number of activities that are compared with each other. */
const MAX_ACTIVITIES = 500;
const MAX_QUERIES = 5;
/** Two queries of one user belong to one client if this share of their visits coincides. */
const COINCIDING_SHARE = 0.75;
/** Periods within this factor are equal. */
const SAME_PERIOD_FACTOR = 1.15;
/** The number of visits for high confidence. */
const CONFIDENT_VISITS = 4;

/** A client with the first of its activities. */
interface ActiveClient extends NamedClient {
  activity: ClientActivity;
}

/** How long a compute stays awake after a client, in milliseconds; the platform's default for one that never suspends. */
export function awakeAfterMs(suspendTimeoutSeconds: number): number {
  return 1000 * (suspendTimeoutSeconds > 0 ? suspendTimeoutSeconds : DEFAULT_SUSPEND_TIMEOUT_SECONDS);
}

/**
 * Names the clients that kept a compute awake while it was sampled, the largest share first. By the platform's rule, a running query, an open
 * transaction or a replication connection keeps a compute awake, and each query does for `timeoutMs` after its end. A session that is only
 * open does not. Source: monitor.rs of neondatabase/neon.
 */
export function nameClients({ samples, texts, timeoutMs }: SampledPostgres & { timeoutMs: number }): NamedClient[] {
  const [fromMs, toMs] = spanOf(samples);
  if (toMs <= fromMs) return [];
  const resolutionMs = (toMs - fromMs) / (samples.length - 1);
  const countsCalls = samples.some(({ calls }) => calls !== undefined);
  const clients = collectActivity({ samples, texts }).flatMap((activity) => {
    if (activity.kind !== 'queries') return [clientOf(activity, undefined, { fromMs, toMs, timeoutMs })];
    const rhythms = rhythmsOf(activity.visits, { fromMs, toMs, resolutionMs, countsCalls });
    return rhythms.map(({ visits, periodMs, isFrequent }) => {
      const client = clientOf({ ...activity, visits: [...visits] }, periodMs, { fromMs, toMs, timeoutMs });
      return isFrequent ? { ...client, kind: 'frequent' as const } : client;
    });
  });
  const largest = clients.toSorted(byShare).slice(0, MAX_ACTIVITIES);
  return mergeClients(largest, resolutionMs)
    .filter(({ share, queries, kind }) => share >= MIN_SHARE && (kind !== 'irregular' || !queries.every(isFrame)))
    .toSorted(byShare)
    .slice(0, MAX_CLIENTS)
    .map(({ activity: _activity, ...client }) => client);
}

function byShare(a: NamedClient, b: NamedClient): number {
  return b.share - a.share || b.visits - a.visits;
}

function clientOf(
  activity: ClientActivity,
  periodMs: number | undefined,
  span: { fromMs: number; toMs: number; timeoutMs: number },
): ActiveClient {
  const { kind, user, application, queryId, text, visits } = activity;
  const period = periodMs === undefined ? {} : { periodMs };
  const calls = sum(visits.map((visit) => visit.calls));
  const regularity = periodMs === undefined ? 'irregular' : 'periodic';
  return {
    kind: kind === 'queries' ? regularity : kind,
    user,
    ...(application !== '' && { application }),
    queries: text === '' ? [] : [{ ...(queryId !== undefined && { queryId }), text }],
    ...period,
    visits: calls,
    share: awakeForMs(visits, { ...span, ...period }) / (span.toMs - span.fromMs),
    confidence: kind !== 'queries' || calls >= CONFIDENT_VISITS ? 'high' : 'low',
    activity,
  };
}

/** Facts about sessions from the last sample. */
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

/** How long the samples themselves kept the compute awake beyond all other activity, in milliseconds; 0 if it never suspends. */
export function keptAwakeMs({
  samples,
  texts,
  timeoutMs,
  neverSuspends,
}: SampledPostgres & { timeoutMs: number; neverSuspends: boolean }): number {
  const [fromMs, toMs] = spanOf(samples);
  if (neverSuspends || samples.length === 0) return 0;
  const span = { fromMs, toMs: toMs + timeoutMs, timeoutMs };
  const others = collectActivity({ samples, texts }).flatMap(({ visits }) => visits);
  const ofEbb = samples.map(({ atMs }): Visit => ({ fromMs: atMs, toMs: atMs, calls: 1, errorMs: 0 }));
  return awakeForMs([...others, ...ofEbb], span) - awakeForMs(others, span);
}

/** The last activity of other clients that a sample shows, milliseconds since the epoch; `beforeMs` is the instant of the previous sample. */
export function lastOthersMs({ atMs, sessions, calls = [] }: ClientSample, beforeMs: number): number {
  const active = sessions.map(({ state, kind, stateSinceMs }) =>
    state === 'idle' && kind === 'client' ? stateSinceMs : atMs,
  );
  return Math.max(Number.NEGATIVE_INFINITY, ...active, ...(calls.length > 0 ? [beforeMs] : []));
}

function spanOf(samples: readonly ClientSample[]): [number, number] {
  return [samples[0]?.atMs ?? 0, samples.at(-1)?.atMs ?? 0];
}

/** How long visits keep the compute awake in the span: each for its length and the timeout. A periodic client came one period earlier, too. */
function awakeForMs(
  visits: readonly Visit[],
  { fromMs, toMs, timeoutMs, periodMs }: { fromMs: number; toMs: number; timeoutMs: number; periodMs?: number },
): number {
  const first = visits.reduce((least, visit) => Math.min(least, visit.fromMs), Number.POSITIVE_INFINITY);
  const before = periodMs !== undefined ? [{ fromMs: first - periodMs, toMs: first - periodMs }] : [];
  let covered = 0;
  let untilMs = fromMs;
  for (const visit of [...before, ...visits].toSorted((a, b) => a.fromMs - b.fromMs)) {
    const end = Math.min(toMs, visit.toMs + timeoutMs);
    covered += Math.max(0, end - Math.max(untilMs, visit.fromMs));
    untilMs = Math.max(untilMs, end);
  }
  return covered;
}

/** Joins the activities of one client: activities of the same user and application at about the same times. */
function mergeClients(all: readonly ActiveClient[], resolutionMs: number): ActiveClient[] {
  const clients: ActiveClient[] = [];
  const isFraming = ({ queries }: NamedClient) => Number(queries.every(isFrame));
  for (const added of all.toSorted((a, b) => isFraming(a) - isFraming(b) || byShare(a, b))) {
    const same = clients.find((client) => isSameClient(client, added, resolutionMs));
    if (!same) {
      clients.push({ ...added });
      continue;
    }
    if (added.application !== undefined) same.application ??= added.application;
    same.queries = [...same.queries, ...added.queries.filter((query) => !isFrame(query))].slice(0, MAX_QUERIES);
    same.share = Math.max(same.share, added.share);
  }
  return clients;
}

function isSameClient(client: ActiveClient, other: ActiveClient, resolutionMs: number): boolean {
  const { user, application } = client;
  if (user !== other.user || (application !== other.application && application && other.application)) return false;
  if (client.kind === 'replication' || other.kind === 'replication') return false;
  if (!coincide(client, other, resolutionMs)) return false;
  if (other.queries.every(isFrame)) return true;
  if (client.periodMs === undefined && other.periodMs === undefined) {
    return [...other.activity.sessions].some((session) => client.activity.sessions.has(session));
  }
  const [a, b] = [client.periodMs ?? 0, other.periodMs ?? 0];
  return Math.max(a, b) <= SAME_PERIOD_FACTOR * Math.min(a, b) && coincide(other, client, resolutionMs);
}

/** True if most visits of `other` coincide with visits of `client`. */
function coincide(client: ActiveClient, other: ActiveClient, resolutionMs: number): boolean {
  const { visits } = other.activity;
  const together = visits.filter((visit) =>
    client.activity.visits.some(
      ({ fromMs, toMs }) => fromMs - resolutionMs <= visit.toMs && visit.fromMs - resolutionMs <= toMs,
    ),
  );
  return together.length >= COINCIDING_SHARE * visits.length;
}
