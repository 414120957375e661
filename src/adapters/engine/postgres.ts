import type { PgPool } from 'bullmq';
import { Pool } from 'pg';
import { asError } from '../../common/errors.ts';
import {
  createOutageTranslation,
  createStateChanges,
  explainConnectError,
  type OpenedEngine,
  REMEDY,
  refused,
} from './opened-engine.ts';
import { isServerUnavailable, prepareSchema, watchPool } from './watched-pool.ts';

const CONNECT_TIMEOUT_MS = 3000;
/** Each worker keeps a connection to listen on. */
const MAX_CONNECTIONS = 12;

/** Connects to Postgres. Fails within 3 s if the server can't be reached. */
export async function openPostgres({ url, schema }: { url: string; schema: string }): Promise<OpenedEngine> {
  if (!URL.canParse(url)) return refused('EBB_QUEUE_URL is not a URL');
  const { hostname, port } = new URL(url);
  const address = `${hostname || 'localhost'}:${port || '5432'}`;
  const server = new Pool({
    connectionString: url,
    options: `-c search_path=${schema}`,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'ebb',
  });
  // Each of BullMQ's queues and workers listens for errors.
  server.setMaxListeners(0);
  // BullMQ's type is narrower, and has other overloads of `on`.
  const pool = server as unknown as PgPool;
  // Without a listener, the error of an idle connection would end the process. `watchPool` reports outages.
  server.on('error', () => {});
  try {
    await prepareSchema({ pool, schema });
  } catch (error) {
    await server.end();
    const reason = explainConnectError(asError(error));
    return refused(`cannot use Postgres at ${address}: ${reason}; ${REMEDY}`);
  }
  const { report, onStateChange, end } = createStateChanges();
  const stopWatching = watchPool({
    pool,
    onChange: (error) =>
      report(
        error === undefined
          ? { up: true, message: `Postgres at ${address} is back` }
          : { up: false, message: `Postgres at ${address} is gone: ${explainConnectError(error)}` },
      ),
  });
  const close = () => {
    end();
    stopWatching();
    return server.end();
  };
  const engine = { kind: 'postgres', name: 'Postgres', schema, pool, close } as const;
  const translation = createOutageTranslation({
    message: () => 'Postgres is not reachable',
    isUnavailable: isServerUnavailable,
  });
  return { ok: true, engine: { ...engine, ...translation, onStateChange } };
}
