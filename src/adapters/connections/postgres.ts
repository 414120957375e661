import { readFile } from 'node:fs/promises';
import pg, { type ClientConfig } from 'pg';
import { decodeUrlPart } from '../../common/decode.ts';
import { isLoopbackHost } from '../../common/loopback.ts';
import type {
  ConnectionCounter,
  CountError,
  CountOutcome,
  CountRequest,
  SourceAnswer,
} from '../../ports/connections.ts';
import { countEach, failed, isTlsError, type ReadSecret } from './outcomes.ts';

const TIMEOUTS = { connectMs: 5_000, statementMs: 3_000 };
const AT_ONCE = 8;

/**
 * If `last_active` is later than a count by more than this, in milliseconds, somebody else has connected since. A smaller difference may be due
 * to the count itself, which is activity, too: the control API shows whole seconds of another clock.
 */
const OWN_ACTIVITY_MS = 5_000;

/** Without the role pg_monitor, sessions of other users have no `backend_type`: they are `hidden`, and would not be counted. */
const QUERY = `
SELECT count(*) FILTER (WHERE backend_type = 'client backend')::int AS connections,
  count(*) FILTER (WHERE backend_type IS NULL)::int AS hidden,
  current_setting('max_connections')::int AS max_connections
FROM pg_stat_activity WHERE pid <> pg_backend_pid()`;

interface Row {
  connections: number;
  hidden: number;
  max_connections: number;
}

/**
 * Asks each compute's server in a short session. A session wakes a compute, or keeps it awake, so only active computes are asked. After a
 * count of zero, a compute is not asked again until somebody has connected.
 */
export function createPostgresCounter({
  readDsnText,
  now,
  timeouts = TIMEOUTS,
}: {
  /** The connection string, perhaps with `$host`. */
  readDsnText: ReadSecret;
  /** This process's clock, milliseconds since the epoch. */
  now: () => number;
  timeouts?: typeof TIMEOUTS;
}): ConnectionCounter {
  async function ask({ compute, zeroCountedAtMs }: CountRequest, signal: AbortSignal): Promise<CountOutcome> {
    const { state, pendingState, disabled, lastActiveAtMs = 0, host } = compute;
    if (state !== 'active' || pendingState !== undefined || disabled) {
      return failed('not_active', 'it is not asked: that would wake it');
    }
    if (zeroCountedAtMs !== undefined && lastActiveAtMs <= zeroCountedAtMs + OWN_ACTIVITY_MS) {
      return { ok: true, value: { connections: 0, countedAtMs: zeroCountedAtMs } };
    }
    const text = await readDsnText().catch((error: unknown) => error);
    if (typeof text !== 'string') return failed('misconfigured', text instanceof Error ? text.message : 'no secret');
    const config = await readDsn(text, host);
    if (!config.ok) return config;
    return countClients({ ...config.value, ...limitsOf(timeouts) }, signal);
  }

  async function countClients(config: pg.ClientConfig, signal: AbortSignal): Promise<CountOutcome> {
    try {
      const { rows } = await withSession(config, signal, (client) => client.query<Row>(QUERY));
      return outcomeOf(rows[0], now());
    } catch (error) {
      return signal.aborted ? failed('timeout', 'no answer in time') : explainPostgresError(error);
    }
  }

  return {
    count: (requests, signal) => countEach(requests, AT_ONCE, (request) => ask(request, signal)),
    close: async () => undefined,
  };
}

/** Runs work in a session of its own. An abort of the signal ends the session, but only once it has connected or its timeout has passed. */
export async function withSession<T>(
  config: pg.ClientConfig,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(config);
  // Errors after the answer don't matter.
  client.on('error', () => undefined);
  const cutOff = () => void client.end().catch(() => undefined);
  signal.addEventListener('abort', cutOff, { once: true });
  try {
    signal.throwIfAborted();
    await client.connect();
    return await work(client);
  } finally {
    signal.removeEventListener('abort', cutOff);
    await client.end().catch(() => undefined);
  }
}

function limitsOf({ connectMs, statementMs }: typeof TIMEOUTS): pg.ClientConfig {
  return {
    application_name: 'ebb',
    connectionTimeoutMillis: connectMs,
    statement_timeout: statementMs,
    // For a server that hangs.
    query_timeout: statementMs + 1_000,
  };
}

export const LACKS_PG_MONITOR = failed('unauthorised', 'the role sees no sessions of others: GRANT pg_monitor TO it');

function outcomeOf(row: Row | undefined, countedAtMs: number): CountOutcome {
  if (row === undefined) return failed('no_data', 'pg_stat_activity gave no row');
  if (row.hidden > 0) return LACKS_PG_MONITOR;
  const { connections, max_connections: maxConnections } = row;
  return { ok: true, value: { connections, maxConnections, countedAtMs } };
}

const NOT_ADMITTED = '28000';
/** By SQLSTATE, or by the error code of Node. */
const CODES: ReadonlyMap<string, CountError['code']> = new Map<string, CountError['code']>([
  ['28P01', 'unauthorised'],
  [NOT_ADMITTED, 'unauthorised'],
  ['42501', 'unauthorised'],
  ['3D000', 'misconfigured'],
  ['57014', 'timeout'],
  ['ETIMEDOUT', 'timeout'],
  ['ENOTFOUND', 'unavailable'],
]);
const TOO_MANY_CONNECTIONS = '53300';

/** A server that accepts no more connections is an outcome, not an error. */
export function explainPostgresError(error: unknown): CountOutcome {
  const code = codeOf(error);
  const message = error instanceof Error && error.message !== '' ? error.message : code;
  if (code === TOO_MANY_CONNECTIONS && !isOwnLimit(error)) return { ok: true, value: 'full' };
  const known = CODES.get(code);
  // Words of a message may be names of roles and databases, so the code counts. 28000 may mean a lack of TLS, which only the message says.
  if (known !== undefined && code !== NOT_ADMITTED) return failed(known, message);
  if (isTlsError(code) || /SSL|certificate/i.test(message)) return failed('tls', message);
  if (/timeout/i.test(message)) return failed('timeout', message);
  return failed(known ?? 'unavailable', message);
}

/** True if a role or a database has reached its own limit, not the server. Recognised by the routine, since messages may be translated. */
function isOwnLimit(error: unknown): boolean {
  const routine = error instanceof Error && 'routine' in error ? error.routine : undefined;
  return routine === 'InitializeSessionUserId' || routine === 'CheckMyDatabase';
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

const HOST = /^[A-Za-z0-9.-]+$/;
const VERIFYING_MODES = ['require', 'verify-ca', 'verify-full'];
const ALLOWED_PARAMETERS = new Set(['sslmode', 'sslrootcert', 'channel_binding']);
const EXPECTED = 'expected postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE';

/**
 * Parses a connection string, and replaces `$host` in it. The modes require, verify-ca and verify-full of `sslmode` all mean verify-full. A
 * server on this machine may also have `disable`. Messages never contain the string.
 */
export async function readDsn(text: string, host: string | undefined): Promise<SourceAnswer<ClientConfig>> {
  if (text.includes('$host') && (host === undefined || !HOST.test(host))) {
    return failed('misconfigured', 'the control API gives no host for $host');
  }
  const dsn = text.replaceAll('$host', host ?? '');
  const url = /^postgres(ql)?:\/\//.test(dsn) && URL.canParse(dsn) ? new URL(dsn) : undefined;
  // Without a user, `pg` takes PGUSER or the user of this process.
  if (url === undefined || url.hostname === '' || url.username === '') {
    return failed('misconfigured', `no connection string: ${EXPECTED}`);
  }
  const unknown = [...url.searchParams.keys()].find((key) => !ALLOWED_PARAMETERS.has(key));
  if (unknown !== undefined)
    return failed('misconfigured', 'the connection string may say sslmode, sslrootcert and channel_binding only');
  const tls = await tlsOf(url);
  if (!tls.ok) return tls;
  const config = {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 5432 : Number(url.port),
    user: decodeUrlPart(url.username),
    database: decodeUrlPart(url.pathname.slice(1)) || 'postgres',
    ssl: tls.value,
    // The platform's console writes this parameter into connection strings. Unless it is `disable`, `pg` binds the channel if the server can.
    ...(url.searchParams.has('channel_binding') && {
      enableChannelBinding: url.searchParams.get('channel_binding') !== 'disable',
    }),
    // Without one, `pg` reads PGPASSWORD, or the password file.
    ...(url.password !== '' && { password: decodeUrlPart(url.password) }),
  };
  return { ok: true, value: config };
}

async function tlsOf({ hostname, searchParams }: URL): Promise<SourceAnswer<NonNullable<ClientConfig['ssl']>>> {
  const isLocal = isLoopbackHost(hostname);
  const mode = searchParams.get('sslmode') ?? (isLocal ? 'disable' : 'verify-full');
  if (mode === 'disable' && isLocal) return { ok: true, value: false };
  if (!VERIFYING_MODES.includes(mode)) {
    return failed(
      'tls',
      'sslmode must be verify-full (or require, which means the same here), or disable on this machine',
    );
  }
  const file = searchParams.get('sslrootcert');
  if (file === null || file === 'system') return { ok: true, value: { rejectUnauthorized: true } };
  try {
    return { ok: true, value: { rejectUnauthorized: true, ca: await readFile(file, 'utf8') } };
  } catch {
    return failed('misconfigured', 'the file that sslrootcert names cannot be read');
  }
}
