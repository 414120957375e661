/** The sessions by which `ebb verify` is a client, on a real Postgres. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { parseDatabase } from '../../src/adapters/connections/session.ts';
import type { Database } from '../../src/ports/verify.ts';
import { eventually } from '../support/eventually.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';

const NEVER = new AbortController().signal;

async function databaseAt(url: string): Promise<Database> {
  const opened = await parseDatabase(url);
  if (!opened.ok) throw new Error(opened.problem);
  return opened.value;
}

describeWith('postgres', 'a session of ebb verify', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgresServer();
  }, 60_000);
  afterAll(() => server.close());

  /** The state and the statement of each session, as the server sees them. */
  async function seen(): Promise<string[]> {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const { rows } = await client.query(
      "SELECT state || ' ' || query AS shown FROM pg_stat_activity WHERE application_name = 'ebb verify'",
    );
    await client.end();
    return rows.map(({ shown }) => shown);
  }

  async function session() {
    const opened = await (await databaseAt(server.url)).connect(NEVER);
    onTestFinished(() => opened.close());
    return opened;
  }

  it('runs a statement and rests, and is gone from the server once it is closed', async () => {
    const resting = await session();
    await resting.use();
    expect([resting.isOpen(), await seen()]).toEqual([true, ['idle SELECT 1']]);
    await resting.close();
    expect(resting.isOpen()).toBe(false);
    await expect(resting.use()).rejects.toThrow();
    await eventually(seen).toEqual([]);
  });

  it('works until it is closed, and keeps the server busy no longer', async () => {
    const working = await session();
    working.work();
    await eventually(seen).toEqual([expect.stringMatching(/^active SELECT pg_sleep/)]);
    await working.close();
    await eventually(seen).toEqual([]);
  });

  it('knows when a restart has ended it, resting or working', async () => {
    const [resting, working] = [await session(), await session()];
    working.work();
    await server.kill();
    await server.start();
    await eventually(() => [resting.isOpen(), working.isOpen()]).toEqual([false, false]);
    await expect(resting.use()).rejects.toThrow();
  });

  it('is not waited for once the run is stopped, and names no password', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const stopping = new AbortController();
    const database = await databaseAt(`postgres://ann:secret-1@127.0.0.1:${port}/shop`);
    const connecting = database.connect(stopping.signal);
    await once(silent, 'connection');
    stopping.abort();
    await expect(connecting).rejects.toThrow(/^(?!.*secret-1)/);
    await expect(database.connect(stopping.signal)).rejects.toThrow();
  });
});
