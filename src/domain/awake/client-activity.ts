/** A session as `pg_stat_activity` shows it. Instants are milliseconds since the epoch, by the clock of that Postgres. */
export interface SeenSession {
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

/** What one look at a Postgres has shown. */
export interface ClientSample {
  atMs: number;
  sessions: readonly SeenSession[];
  /** Calls that ended since the sample before; absent without `pg_stat_statements`, and for the first sample. */
  calls?: readonly { user: string; queryId: string; calls: number }[];
}

/** One query, or several in one interval between samples. Milliseconds since the epoch. */
export interface Visit {
  fromMs: number;
  toMs: number;
  calls: number;
  /** 0 if a session showed the instant; otherwise it is the middle between two samples, and off by so much at most. */
  unsureMs: number;
}

/** What one user did with one application and one query. */
export interface ClientActivity {
  kind: 'queries' | 'open_transaction' | 'long_query' | 'replication';
  user: string;
  application: string;
  queryId?: string;
  text: string;
  visits: Visit[];
  /** The sessions that showed it. */
  sessions: ReadonlySet<string>;
}

/** A query or transaction that so many samples have seen goes on. */
const LONG_SAMPLES = 3;

/** A visit that a session showed, and how. */
interface SeenVisit extends Visit {
  session: string;
  /** How many samples saw it before it ended. */
  samples: number;
  isOpenTransaction: boolean;
}

interface Collected extends Omit<ClientActivity, 'sessions'> {
  /** By session and start. */
  seen: Map<string, SeenVisit>;
}
/** In the statements of ebb itself, so that it is not named. */
export const OWN_MARK = 'ebb --ask-postgres';

interface Asked {
  samples: readonly ClientSample[];
  texts: ReadonlyMap<string, string>;
}

/**
 * Collects from samples when which user was active with which query. Sessions show exact instants, but only the last query of each, and
 * none that ended between samples; the calls of `pg_stat_statements` show all, but not of which application.
 */
export function collectActivity({ samples, texts }: Asked): ClientActivity[] {
  const activities = new Map<string, Collected>();
  const activityOf: ActivityOf = (kind, { user, application, queryId, query }) => {
    const key = JSON.stringify([kind, user, application, queryId ?? query]);
    const known = activities.get(key);
    if (known) return known;
    const text = (queryId !== undefined && texts.get(queryId)) || query;
    const id = queryId === undefined ? {} : { queryId };
    const added: Collected = { kind, user, application, ...id, text, visits: [], seen: new Map() };
    activities.set(key, added);
    return added;
  };
  for (const { atMs, sessions } of samples) {
    for (const session of sessions) {
      addSession(activityOf(session.kind === 'replication' ? 'replication' : 'queries', session), session, atMs);
    }
  }
  const byQuery = new Map<string, Collected[]>();
  for (const one of activities.values()) {
    const key = JSON.stringify([one.user, one.queryId]);
    byQuery.set(key, [...(byQuery.get(key) ?? []), one]);
  }
  for (const [index, { atMs, calls = [] }] of samples.entries()) {
    const beforeMs = samples[index - 1]?.atMs ?? atMs;
    for (const one of calls) {
      const shownBy = byQuery.get(JSON.stringify([one.user, one.queryId])) ?? [];
      addCalls(activityOf, one, { shownBy, beforeMs, atMs });
    }
  }
  return [...activities.values()].flatMap(split).filter(({ text }) => text !== OWN_MARK);
}

type ActivityOf = (
  kind: 'queries' | 'replication',
  of: Pick<SeenSession, 'user' | 'application' | 'query'> & { queryId?: string },
) => Collected;

/** Adds calls between two samples, of which sessions may have shown some. */
function addCalls(
  activityOf: ActivityOf,
  { user, queryId, calls }: { user: string; queryId: string; calls: number },
  { shownBy, beforeMs, atMs }: { shownBy: readonly Collected[]; beforeMs: number; atMs: number },
): void {
  const shown = shownBy.flatMap(({ seen }) => {
    return [...seen.values()].filter(({ toMs }) => toMs > beforeMs && toMs <= atMs);
  });
  const [first] = shown;
  if (first) {
    first.calls += Math.max(0, calls - shown.length);
    return;
  }
  // The same query of one user through several applications: nobody knows whose it was.
  const application = shownBy.length === 1 ? (shownBy[0]?.application ?? '') : '';
  const middleMs = (beforeMs + atMs) / 2;
  const visit = { fromMs: middleMs, toMs: middleMs, calls, unsureMs: (atMs - beforeMs) / 2 };
  activityOf('queries', { user, application, query: '', queryId }).visits.push(visit);
}

function addSession({ seen }: Collected, session: SeenSession, atMs: number): void {
  const visit = visitOf(session, atMs);
  const key = `${session.pid} ${session.startedAtMs} ${visit.fromMs}`;
  const before = seen.get(key);
  seen.set(key, {
    ...visit,
    session: `${session.pid} ${session.startedAtMs}`,
    samples: (before?.samples ?? 0) + (session.state === 'idle' ? 0 : 1),
    isOpenTransaction: before?.isOpenTransaction || session.state === 'idle_in_transaction',
  });
}

/** The time for which a session kept the compute awake by itself: while it was not idle. */
function visitOf(session: SeenSession, atMs: number): Visit {
  const { kind, state, startedAtMs, queryStartedAtMs, stateSinceMs, transactionStartedAtMs } = session;
  const once = { calls: 1, unsureMs: 0 };
  if (kind === 'replication') return { ...once, fromMs: startedAtMs, toMs: atMs };
  if (state === 'idle') return { ...once, fromMs: queryStartedAtMs, toMs: Math.max(queryStartedAtMs, stateSinceMs) };
  return { ...once, fromMs: transactionStartedAtMs ?? queryStartedAtMs, toMs: atMs };
}

/** Tells queries and transactions that go on apart from those that come and go. */
function split({ seen, ...collected }: Collected): ClientActivity[] {
  const activity = { ...collected, sessions: new Set([...seen.values()].map(({ session }) => session)) };
  const visits = [...seen.values()].toSorted((a, b) => a.fromMs - b.fromMs);
  if (activity.kind === 'replication') return [{ ...activity, visits }];
  const long = visits.filter(({ samples }) => samples >= LONG_SAMPLES);
  const short = [...activity.visits, ...visits.filter(({ samples }) => samples < LONG_SAMPLES)];
  const kind = long.some(({ isOpenTransaction }) => isOpenTransaction) ? 'open_transaction' : 'long_query';
  return [
    ...(long.length > 0 ? [{ ...activity, kind, visits: long } satisfies ClientActivity] : []),
    ...(short.length > 0 ? [{ ...activity, visits: short.toSorted((a, b) => a.fromMs - b.fromMs) }] : []),
  ];
}
