import pg, { type ClientConfig } from 'pg';
import { type ClientSample, OWN_MARK, type SampledSession } from '../../domain/awake/client-activity.ts';
import { fingerprint } from '../../domain/awake/fingerprint.ts';
import type { ClientSampler } from '../../ports/connections.ts';
import { failed } from './outcomes.ts';
import { explainPostgresError, LACKS_PG_MONITOR, withSession } from './postgres.ts';

const LIMITS: ClientConfig = { application_name: OWN_MARK, connectionTimeoutMillis: 5_000, query_timeout: 5_000 };
const MAX_SESSIONS = 2_000;
const MAX_STATEMENTS = 5_000;
/** The number of characters that are read of a query; fewer are shown. */
const MAX_TEXT_LENGTH = 2_000;
/** pg_stat_statements keeps comments, so this marks ebb's own statements. */
const MARK = `/* ${OWN_MARK} */`;

/** Excludes the platform's own role, whose sessions keep no compute awake. */
const NOT_PLATFORM = `IS DISTINCT FROM 'cloud_admin'`;
const ms = (column: string) => `extract(epoch FROM ${column})::float8 * 1000`;

const SESSIONS = `
SELECT coalesce(json_agg(s), '[]') FROM (
  SELECT pid, usename AS user, application_name AS application, backend_type AS type, coalesce(state, 'active') AS state,
    ${ms('backend_start')} AS started, ${ms('query_start')} AS query_started, ${ms('state_change')} AS since,
    ${ms('xact_start')} AS transaction_started, query_id::text, left(query, ${MAX_TEXT_LENGTH}) AS query
  FROM pg_stat_activity
  WHERE pid <> pg_backend_pid() AND usename ${NOT_PLATFORM} AND application_name NOT IN ('walproposer', '${OWN_MARK}')
    AND (backend_type IN ('client backend', 'walsender') OR backend_type LIKE 'logical replication%worker')
  ORDER BY state_change DESC NULLS LAST LIMIT ${MAX_SESSIONS}) s`;

const statementsIn = (schema: string) => `
SELECT coalesce(json_agg(s), '[]') FROM (
  SELECT r.rolname AS user, s.queryid::text AS id, sum(s.calls)::float8 AS calls
  FROM ${schema}.pg_stat_statements(false) s JOIN pg_roles r ON r.oid = s.userid
  WHERE s.queryid IS NOT NULL AND s.toplevel AND r.rolname ${NOT_PLATFORM}
  GROUP BY 1, 2 ORDER BY 3 DESC LIMIT ${MAX_STATEMENTS + 1}) s`;

interface SessionRow {
  pid: number;
  user: string | null;
  application: string | null;
  type: string;
  state: string;
  started: number | null;
  query_started: number | null;
  since: number | null;
  transaction_started: number | null;
  query_id: string | null;
  query: string | null;
}

/** Instants here and in its sessions are milliseconds since the epoch. */
interface Row {
  at: number;
  /** The number of sessions whose details the role may not see. */
  hidden: number;
  sessions: SessionRow[];
  statements: { user: string; id: string; calls: number }[] | null;
}

/** Samples the sessions and statements of one Postgres, for `--ask-postgres`. Remembers the texts of statements, and how often each was called. */
export function createClientSampler(config: ClientConfig): ClientSampler {
  const session = { ...config, ...LIMITS };
  /** The schema of `pg_stat_statements`, quoted; null if it can't be read, undefined before the first sample. */
  let schema: string | null | undefined;
  let callsBefore: Map<string, number> | undefined;
  const texts = new Map<string, string>();

  async function readRow(client: pg.Client): Promise<Row | undefined> {
    const statements = schema ? `(${statementsIn(schema)})` : 'NULL::json';
    const sql = `SELECT ${MARK} ${ms('clock_timestamp()')} AS at, (${SESSIONS}) AS sessions, ${statements} AS statements,
      (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type IS NULL) AS hidden`;
    return (await client.query<Row>(sql)).rows[0];
  }

  async function readFirstRow(client: pg.Client): Promise<Row | undefined> {
    const { rows } = await client.query<{ nspname: string }>(
      `SELECT ${MARK} n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'pg_stat_statements'`,
    );
    schema = rows[0] ? pg.escapeIdentifier(rows[0].nspname) : null;
    try {
      return await readRow(client);
    } catch (error) {
      if (schema === null) throw error;
      // The extension exists, but is not loaded, or is hidden from this role.
      schema = null;
      return readRow(client);
    }
  }

  /** Statements by user that were called since the last sample; undefined at the first one. */
  function callsSince(statements: NonNullable<Row['statements']>): ClientSample['calls'] {
    const last = callsBefore;
    callsBefore = new Map(statements.map(({ user, id, calls }) => [JSON.stringify([user, id]), calls]));
    if (last === undefined) return undefined;
    // If the last sample was cut, it lacked rarely called statements: how many of their calls are new is unknown.
    const isCut = last.size > MAX_STATEMENTS;
    return statements.flatMap(({ user, id, calls }) => {
      const lastCalls = last.get(JSON.stringify([user, id])) ?? (isCut ? calls : 0);
      // Fewer than before: the statistics were reset.
      const more = calls >= lastCalls ? calls - lastCalls : calls;
      return more > 0 ? [{ user, queryId: id, calls: more }] : [];
    });
  }

  /** Reads the texts of statements that are not known yet, in the session of a sample. */
  async function readTexts(client: pg.Client, ids: readonly string[]): Promise<void> {
    const unread = ids.filter((id) => !texts.has(id));
    if (unread.length === 0) return;
    // A text is null if Postgres has lost its file of texts.
    const { rows } = await client.query<{ id: string; query: string | null }>(
      `SELECT ${MARK} queryid::text AS id, min(left(query, ${MAX_TEXT_LENGTH})) AS query
        FROM ${schema}.pg_stat_statements WHERE queryid = ANY($1::bigint[]) GROUP BY 1`,
      [unread],
    );
    for (const { id, query } of rows) texts.set(id, query?.includes(OWN_MARK) ? OWN_MARK : fingerprint(query ?? ''));
  }

  return {
    texts,
    async sample(signal) {
      try {
        return await withSession(session, signal, async (client) => {
          const row = schema === undefined ? await readFirstRow(client) : await readRow(client);
          if (!row) return failed('no_data', 'pg_stat_activity gave no row');
          if (row.hidden > 0) return LACKS_PG_MONITOR;
          const calls = row.statements ? callsSince(row.statements) : undefined;
          await readTexts(client, calls?.map(({ queryId }) => queryId) ?? []);
          const callsOfOthers = calls?.filter(({ queryId }) => texts.get(queryId) !== OWN_MARK);
          const sessions = row.sessions.map(sessionOf);
          return { ok: true, value: { atMs: row.at, sessions, ...(callsOfOthers && { calls: callsOfOthers }) } };
        });
      } catch (error) {
        const explained = explainPostgresError(error);
        return explained.ok ? failed('unavailable', 'it accepts no more connections') : explained;
      }
    },
  };
}

function sessionOf(row: SessionRow): SampledSession {
  const started = row.started ?? 0;
  return {
    pid: row.pid,
    startedAtMs: started,
    user: row.user ?? '',
    application: row.application ?? '',
    kind: row.type === 'client backend' ? 'client' : 'replication',
    state: stateOf(row.state),
    queryStartedAtMs: row.query_started ?? started,
    stateSinceMs: row.since ?? started,
    ...(row.transaction_started !== null && { transactionStartedAtMs: row.transaction_started }),
    ...(row.query_id !== null && { queryId: row.query_id }),
    query: fingerprint(row.query ?? ''),
  };
}

function stateOf(state: string): SampledSession['state'] {
  if (state === 'idle') return 'idle';
  return state.startsWith('idle in transaction') ? 'idle_in_transaction' : 'active';
}
