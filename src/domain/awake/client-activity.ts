import { getOrAdd, groupBy } from '../grouping.ts';

/** A session as `pg_stat_activity` shows it. Instants are milliseconds since the epoch, by the clock of that Postgres. */
export interface SampledSession {
  pid: number;
  startedAtMs: number;
  user: string;
  /** Empty if the client gives none. */
  application: string;
  kind: 'client' | 'replication';
  state: 'active' | 'idle' | 'idle_in_transaction';
  queryStartedAtMs: number;
  /** When the state began: for an idle session, when its last query ended. */
  stateSinceMs: number;
  transactionStartedAtMs?: number;
  queryId?: string;
  /** The last query without its values, see `fingerprint`. */
  query: string;
}

/** The sessions of a Postgres at one instant. */
export interface ClientSample {
  atMs: number;
  sessions: readonly SampledSession[];
  /** Calls that ended since the previous sample; absent without `pg_stat_statements`, and for the first sample. */
  calls?: readonly { user: string; queryId: string; calls: number }[];
}

/** One query, or several in one interval between samples. Milliseconds since the epoch. */
export interface Visit {
  fromMs: number;
  toMs: number;
  calls: number;
  /** The maximum error of the instant: 0 if a session showed it, otherwise half the interval between two samples. */
  errorMs: number;
}

/** All visits of one user with one application and one query. */
export interface ClientActivity {
  kind: 'queries' | 'open_transaction' | 'long_query' | 'replication';
  user: string;
  application: string;
  queryId?: string;
  text: string;
  visits: Visit[];
  /** The sessions that showed the activity. */
  sessions: ReadonlySet<string>;
}

/** A query or transaction is long if at least this many samples show it. */
const LONG_SAMPLES = 3;

/** A visit that a session showed. */
interface SessionVisit extends Visit {
  session: string;
  /** The number of samples that showed the visit before it ended. */
  samples: number;
  isOpenTransaction: boolean;
}

/** An activity that is still being collected. `visits` has only those that no session showed. */
interface PartialActivity extends Omit<ClientActivity, 'sessions'> {
  /** By session and start. */
  sessionVisits: Map<string, SessionVisit>;
}

/** Marks the statements of ebb itself, so that ebb is not named as a client. */
export const OWN_MARK = 'ebb --ask-postgres';

/** The samples of a Postgres, and the statements of its `pg_stat_statements` by id, without values. */
export interface SampledPostgres {
  samples: readonly ClientSample[];
  texts: ReadonlyMap<string, string>;
}

/**
 * Collects the activity of users by query. Sessions show exact instants, but only the last query of each, and samples miss short sessions.
 * The calls of `pg_stat_statements` are complete, but lack the application.
 */
export function collectActivity({ samples, texts }: SampledPostgres): ClientActivity[] {
  const activities = new Map<string, PartialActivity>();
  const activityOf: ActivityOf = (kind, { user, application, queryId, query }) => {
    const key = JSON.stringify([kind, user, application, queryId ?? query]);
    return getOrAdd(activities, key, () => {
      const text = (queryId !== undefined && texts.get(queryId)) || query;
      const id = queryId === undefined ? {} : { queryId };
      return { kind, user, application, ...id, text, visits: [], sessionVisits: new Map() };
    });
  };
  for (const { atMs, sessions } of samples) {
    for (const session of sessions) {
      addSession(activityOf(session.kind === 'replication' ? 'replication' : 'queries', session), session, atMs);
    }
  }
  const byQuery = groupBy(activities.values(), ({ user, queryId }) => JSON.stringify([user, queryId]));
  for (const [index, { atMs, calls = [] }] of samples.entries()) {
    const sinceMs = samples[index - 1]?.atMs ?? atMs;
    for (const one of calls) {
      const shownBy = byQuery.get(JSON.stringify([one.user, one.queryId])) ?? [];
      addCalls(activityOf, one, { shownBy, sinceMs, atMs });
    }
  }
  return [...activities.values()].flatMap(splitByLength).filter(({ text }) => text !== OWN_MARK);
}

type ActivityOf = (
  kind: 'queries' | 'replication',
  statement: Pick<SampledSession, 'user' | 'application' | 'query'> & { queryId?: string },
) => PartialActivity;

/** Adds the calls between two samples; `shownBy` are the activities whose sessions may have shown some of them. */
function addCalls(
  activityOf: ActivityOf,
  { user, queryId, calls }: { user: string; queryId: string; calls: number },
  { shownBy, sinceMs, atMs }: { shownBy: readonly PartialActivity[]; sinceMs: number; atMs: number },
): void {
  const shown = shownBy
    .flatMap(({ sessionVisits }) => [...sessionVisits.values()])
    .filter(({ toMs }) => toMs > sinceMs && toMs <= atMs);
  const [first] = shown;
  if (first) {
    first.calls += Math.max(0, calls - shown.length);
    return;
  }
  // With several applications it is unknown which one made the call.
  const application = shownBy.length === 1 ? (shownBy[0]?.application ?? '') : '';
  const middleMs = (sinceMs + atMs) / 2;
  const visit = { fromMs: middleMs, toMs: middleMs, calls, errorMs: (atMs - sinceMs) / 2 };
  activityOf('queries', { user, application, query: '', queryId }).visits.push(visit);
}

function addSession({ sessionVisits }: PartialActivity, session: SampledSession, atMs: number): void {
  const visit = visitOf(session, atMs);
  const sessionKey = `${session.pid} ${session.startedAtMs}`;
  const key = `${sessionKey} ${visit.fromMs}`;
  const before = sessionVisits.get(key);
  sessionVisits.set(key, {
    ...visit,
    session: sessionKey,
    samples: (before?.samples ?? 0) + (session.state === 'idle' ? 0 : 1),
    isOpenTransaction: before?.isOpenTransaction || session.state === 'idle_in_transaction',
  });
}

/** The time in which a session was not idle, and so kept the compute awake. */
function visitOf(session: SampledSession, atMs: number): Visit {
  const { kind, state, startedAtMs, queryStartedAtMs, stateSinceMs, transactionStartedAtMs } = session;
  const once = { calls: 1, errorMs: 0 };
  if (kind === 'replication') return { ...once, fromMs: startedAtMs, toMs: atMs };
  if (state === 'idle') return { ...once, fromMs: queryStartedAtMs, toMs: Math.max(queryStartedAtMs, stateSinceMs) };
  return { ...once, fromMs: transactionStartedAtMs ?? queryStartedAtMs, toMs: atMs };
}

/** Separates long queries and transactions from short ones. */
function splitByLength({ sessionVisits, ...partial }: PartialActivity): ClientActivity[] {
  const visits = [...sessionVisits.values()].toSorted((a, b) => a.fromMs - b.fromMs);
  const activity = { ...partial, sessions: new Set(visits.map(({ session }) => session)) };
  if (activity.kind === 'replication') return [{ ...activity, visits }];
  const long = visits.filter(({ samples }) => samples >= LONG_SAMPLES);
  const short = [...activity.visits, ...visits.filter(({ samples }) => samples < LONG_SAMPLES)];
  const kind = long.some(({ isOpenTransaction }) => isOpenTransaction) ? 'open_transaction' : 'long_query';
  return [
    ...(long.length > 0 ? [{ ...activity, kind, visits: long } satisfies ClientActivity] : []),
    ...(short.length > 0 ? [{ ...activity, visits: short.toSorted((a, b) => a.fromMs - b.fromMs) }] : []),
  ];
}
