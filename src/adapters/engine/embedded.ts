import { accessSync, constants, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import type { Engine } from '../../ports/engine.ts';
import type { Log } from '../../ports/telemetry.ts';
import { lockFolder } from './folder-lock.ts';
import { createPglitePool, type PglitePool } from './pglite-pool.ts';
import { prepareSchema } from './schema.ts';
import { createStateChanges } from './state-changes.ts';

/** PGlite has no working autovacuum: without this the tables of a busy queue only grow. */
const VACUUM_INTERVAL_MS = 2 * 60 * 60 * 1000;

type Opened = { ok: true; engine: Engine } | { ok: false; error: { message: string } };

/** Opens the Postgres that lives in `folder`, for this process alone; makes both if they are not there. */
export async function openEmbedded(options: { folder: string; schema: string; log: Log }): Promise<Opened> {
  const { folder, schema, log } = options;
  const prepared = prepareFolder(folder);
  if (!prepared.ok) return prepared;
  const lock = await lockFolder({ realPath: prepared.realPath });
  if (!lock.ok) return { ok: false, error: { message: inUse(folder) } };
  let database: PGlite | undefined;
  try {
    database = await PGlite.create(join(prepared.realPath, 'db'));
    const opened = database;
    const pool = createPglitePool({ database: opened });
    await pool.query(`ALTER SYSTEM SET max_wal_size = '64MB'`);
    await prepareSchema({ pool, schema });
    await pool.query(`SET search_path TO "${schema}"`);
    const vacuum = startVacuum(pool, log);
    const close = once(async () => {
      clearInterval(vacuum);
      await pool.end();
      await opened.close();
      await lock.release();
    });
    const { onStateChange } = createStateChanges();
    return { ok: true, engine: { kind: 'postgres', name: 'embedded', schema, pool, onStateChange, close } };
  } catch (error) {
    await database?.close().catch(() => {});
    await lock.release();
    const reason = error instanceof Error ? error.message : String(error);
    return { ok: false, error: { message: `cannot open the embedded queue in ${folder}: ${reason}` } };
  }
}

function inUse(folder: string): string {
  return `the embedded queue in ${folder} is in use by another ebb: stop it, or use redis:// for several daemons`;
}

type Prepared = { ok: true; realPath: string } | { ok: false; error: { message: string } };

function prepareFolder(folder: string): Prepared {
  if (folder === '') return { ok: false, error: { message: 'embedded: needs a folder, e.g. embedded:.ebb' } };
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return { ok: true, realPath: realpathSync(folder) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `cannot write to the folder ${folder} (${code}): make it writable, or name another with embedded:DIR`;
    return { ok: false, error: { message } };
  }
}

function startVacuum(pool: PglitePool, log: Log): NodeJS.Timeout {
  const timer = setInterval(() => {
    pool
      .query('VACUUM')
      .catch((error: unknown) => log.warn({ err: error }, 'the embedded queue could not be vacuumed'));
  }, VACUUM_INTERVAL_MS);
  return timer.unref();
}

function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run();
    return running;
  };
}
