import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createClientSampler } from '../../src/adapters/connections/client-sampler.ts';
import { readDsn } from '../../src/adapters/connections/postgres.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';

const SIGNAL = new AbortController().signal;

describeWith('postgres', 'samples of the clients of a Postgres', () => {
  let server: PostgresServer;
  let client: pg.Client;

  async function connected(): Promise<pg.Client> {
    const opened = new pg.Client({ connectionString: server.url, application_name: 'web' });
    opened.on('error', () => undefined);
    await opened.connect();
    return opened;
  }
  async function sampler() {
    const config = await readDsn(server.url, undefined);
    if (!config.ok) throw new Error(config.error.message);
    return createClientSampler(config.value);
  }

  beforeAll(async () => {
    server = await startPostgresServer();
    client = await connected();
  }, 60_000);
  afterAll(async () => {
    await client.end();
    await server.close();
  });

  it('show sessions without their values, and not ebb', async () => {
    await client.query(`SELECT 'secret', 4711`);
    const sample = await (await sampler()).sample(SIGNAL);
    expect(sample).toMatchObject({
      value: { sessions: [{ user: 'ebb', application: 'web', state: 'idle', query: 'SELECT ?, ?' }] },
    });
    expect(sample).not.toHaveProperty('value.calls');
  });

  it('have no calls where pg_stat_statements is created, but not loaded', async () => {
    await client.query('CREATE EXTENSION pg_stat_statements');
    const sample = await (await sampler()).sample(SIGNAL);
    expect(sample).toMatchObject({ ok: true, value: { sessions: [{ application: 'web' }] } });
    expect(sample).not.toHaveProperty('value.calls');
  });

  it('count the calls since the sample before, of others alone, also after a reset and in another schema', async () => {
    await client.query(`ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`);
    await client.query('CREATE SCHEMA "Stats"');
    await client.query('ALTER EXTENSION pg_stat_statements SET SCHEMA "Stats"');
    await server.kill();
    await server.start();
    client = await connected();
    const asked = await sampler();
    const calls = async () => {
      const sample = await asked.sample(SIGNAL);
      if (!sample.ok) throw new Error(sample.error.message);
      return sample.value.calls?.map(({ user, queryId, calls: count }) => [user, asked.texts.get(queryId), count]);
    };
    expect(await calls()).toBeUndefined();
    for (const value of ['secret', 'other']) await client.query(`SELECT '${value}'::text`);
    expect(await calls()).toEqual([['ebb', 'SELECT ?::text', 2]]);
    expect(await calls()).toEqual([]);
    await client.query('SELECT "Stats".pg_stat_statements_reset()');
    await client.query(`SELECT 'again'::text`);
    expect(await calls()).toContainEqual(['ebb', 'SELECT ?::text', 1]);
  });
});
