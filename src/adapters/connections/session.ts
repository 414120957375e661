import pg, { type ClientConfig } from 'pg';
import { isLoopbackHost } from '../../common/loopback.ts';
import type { Result } from '../../common/result.ts';
import type { Database, DatabaseSession } from '../../ports/verify.ts';
import { readDsn } from './postgres.ts';

/** Connecting wakes a compute, which takes seconds. */
const CONNECT_MS = 30_000;
const STATEMENT_MS = 10_000;
/** The length of a statement. It must be short, since a statement outlives its client and keeps the compute awake. */
const WORK_SECONDS = 5;

/** Parses a connection string, without connecting. No message contains it. */
export async function parseDatabase(text: string): Promise<Result<Database>> {
  const config = await readDsn(text.trim(), undefined);
  if (!config.ok) return { ok: false, problem: config.error.message };
  return { ok: true, value: databaseOf(config.value) };
}

/** Returns a message unless the connection string leads to the compute with this host name, or to this machine. */
export function refusalFor({ host: target = '' }: ClientConfig, host: string | undefined): string | undefined {
  if (target === host || isLoopbackHost(target)) return undefined;
  return target.includes('-pooler')
    ? 'the connection string leads to the pooler: take the direct one, without -pooler'
    : 'the connection string leads to another server than the compute of this project';
}

function databaseOf(config: ClientConfig): Database {
  return {
    refusalFor: (host) => refusalFor(config, host),
    async connect(signal) {
      signal.throwIfAborted();
      const limits = { application_name: 'ebb verify', connectionTimeoutMillis: CONNECT_MS };
      const client = new pg.Client({ ...config, ...limits });
      const stop = () => destroy(client);
      signal.addEventListener('abort', stop);
      client.on('error', () => {});
      await client.connect().finally(() => signal.removeEventListener('abort', stop));
      return sessionOf(client);
    },
  };
}

function sessionOf(client: pg.Client): DatabaseSession {
  let isOpen = true;
  const end = () => {
    isOpen = false;
  };
  client.on('error', end).on('end', end);
  async function work(): Promise<void> {
    while (isOpen) await client.query('SELECT pg_sleep($1)', [WORK_SECONDS]);
  }
  return {
    isOpen: () => isOpen,
    async use() {
      await client.query({ text: 'SELECT 1', query_timeout: STATEMENT_MS } as pg.QueryConfig);
    },
    work: () => void work().catch(() => {}),
    async close() {
      end();
      destroy(client);
    },
  };
}

/** `client.end` would wait for a pending connection or statement. */
function destroy(client: pg.Client): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}
