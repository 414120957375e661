import type { PgPool } from 'bullmq';
import { Pool } from 'pg';
import type { Engine } from '../../ports/engine.ts';
import { explainConnectError } from './connect-errors.ts';
import { prepareSchema } from './schema.ts';
import { createStateChanges } from './state-changes.ts';

const CONNECT_TIMEOUT_MS = 3000;
/** Each worker keeps one connection to listen on. */
const MAX_CONNECTIONS = 12;

type Opened = { ok: true; engine: Engine } | { ok: false; error: { message: string } };

/** Opens a Postgres server; one that is away is an error after at most 3 s. */
export async function openPostgres({ url, schema }: { url: string; schema: string }): Promise<Opened> {
  if (!URL.canParse(url)) return { ok: false, error: { message: 'EBB_QUEUE_URL is not a URL' } };
  const { hostname, port } = new URL(url);
  const address = `${hostname}:${port || '5432'}`;
  const pool = new Pool({
    connectionString: url,
    options: `-c search_path=${schema}`,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'ebb',
  });
  const changes = createStateChanges();
  pool.on('error', () => {});
  try {
    await prepareSchema({ pool: asPgPool(pool), schema });
  } catch (error) {
    await pool.end();
    const reason = explainConnectError(error instanceof Error ? error : new Error(String(error)));
    const message = `cannot use Postgres at ${address}: ${reason}; start it, or leave EBB_QUEUE_URL unset to use the embedded queue`;
    return { ok: false, error: { message } };
  }
  return {
    ok: true,
    engine: {
      kind: 'postgres',
      name: 'Postgres',
      schema,
      pool: asPgPool(pool),
      onStateChange: changes.onStateChange,
      close: () => pool.end(),
    },
  };
}

/** BullMQ's own, narrower view of a pool; only the overloads of `on` are declared differently. */
function asPgPool(pool: Pool): PgPool {
  return pool as unknown as PgPool;
}
