import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createPostgresCounter } from '../../src/adapters/connections/postgres.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { CountRequest } from '../../src/ports/connections.ts';
import { aCompute } from '../support/builders.ts';
import { eventually } from '../support/eventually.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';

const NOW = Date.parse('2026-03-02T12:00:00Z');

describeWith('postgres', 'a Postgres as source of connection counts', () => {
  let server: PostgresServer;
  const clients: pg.Client[] = [];
  const undo: (() => unknown)[] = [];

  beforeAll(async () => {
    server = await startPostgresServer();
    const client = await connected();
    await client.query('ALTER SYSTEM SET max_connections = 6');
    await client.query('CREATE ROLE nobody LOGIN');
    await client.query('CREATE ROLE single LOGIN CONNECTION LIMIT 0');
    await server.kill();
    await server.start();
  }, 60_000);
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.end().catch(() => undefined);
    for (const step of undo.splice(0)) await step();
  });
  afterAll(() => server.close());

  async function connected(url = server.url): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    clients.push(client);
    await client.connect();
    return client;
  }

  async function look(dsn: string, compute: Partial<Compute> = {}, request: Partial<CountRequest> = {}) {
    const timeouts = { connectMs: 1_000, statementMs: 500 };
    const counter = createPostgresCounter({ readDsnText: async () => dsn, now: () => NOW, timeouts });
    const asked = { compute: aCompute({ computeId: 'ep-a', ...compute }), ...request };
    return (await counter.count([asked], new AbortController().signal)).get('ep-a');
  }

  const codeOf = async (...given: Parameters<typeof look>) => {
    const outcome = await look(...given);
    return outcome?.ok === false ? outcome.error.code : outcome;
  };

  it('counts active, idle and idle-in-transaction clients alike', async () => {
    await connected();
    const busy = await connected();
    void busy.query('SELECT pg_sleep(60)').catch(() => undefined);
    const holding = await connected();
    await holding.query('BEGIN');
    const value = { connections: 3, maxConnections: 6, countedAtMs: NOW };
    await eventually(() => look(server.url)).toEqual({ ok: true, value });
    // A server notices only after its query that the client has gone.
    const sleeping = `query LIKE 'SELECT pg_sleep%' AND pid <> pg_backend_pid()`;
    await holding.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${sleeping}`);
  });

  it('does not ask a compute that sleeps, starts, stops or is disabled', async () => {
    const nowhere = 'postgres://ebb@127.0.0.1:1/postgres';
    for (const compute of [
      { state: 'idle' },
      { state: 'init' },
      { state: 'active', pendingState: 'idle' },
      { state: 'active', disabled: true },
    ] as const) {
      expect(await codeOf(nowhere, compute)).toBe('not_active');
    }
  });

  it('does not count again after it saw nobody, until somebody has been there', async () => {
    const zeroCountedAtMs = NOW - 60_000;
    const nobody = { ok: true, value: { connections: 0, countedAtMs: zeroCountedAtMs } };
    const ask = (lastActiveAtMs: number | undefined) =>
      look(server.url, lastActiveAtMs === undefined ? {} : { lastActiveAtMs }, { zeroCountedAtMs });
    expect(await ask(undefined)).toEqual(nobody);
    // The look itself counts as activity, on a clock that shows whole seconds.
    expect(await ask(zeroCountedAtMs + 4_000)).toEqual(nobody);
    // Clients of the case before may still be leaving.
    const seen = eventually(() => ask(zeroCountedAtMs + 6_000));
    await seen.toMatchObject({ ok: true, value: { connections: 0, countedAtMs: NOW } });
  });

  it('counts a server that accepts nobody any more as full, and not a role that may not connect', async () => {
    expect(await codeOf(server.url.replace('ebb@', 'single@'))).toBe('unavailable');
    await eventually(async () => {
      await connected();
      return look(server.url);
    }).toEqual({ ok: true, value: 'full' });
  });

  it('gives no count to a role that sees no others', async () => {
    await connected();
    expect(await look(server.url.replace('ebb@', 'nobody@'))).toMatchObject({
      ok: false,
      error: { code: 'unauthorised', message: expect.stringContaining('pg_monitor') },
    });
  });

  it.each([
    ['no connection string', 'mysql://x', 'misconfigured'],
    ['a connection string without a user', 'postgres://127.0.0.1:1/postgres', 'misconfigured'],
    ['a parameter that would weaken it', 'postgres://a@db.example/x?uselibpqcompat=true', 'misconfigured'],
    ['a compute without a host', 'postgres://a@$host/x', 'misconfigured'],
    ['TLS that is switched off', 'postgres://a@db.example/x?sslmode=disable', 'tls'],
    ['TLS that is not verified', 'postgres://a@db.example/x?sslmode=no-verify', 'tls'],
    ['a certificate that is not there', 'postgres://a@db.example/x?sslrootcert=/no/such/file', 'misconfigured'],
  ])('refuses %s', async (_name, dsn, code) => {
    expect(await codeOf(dsn)).toBe(code);
  });

  it('says that the server speaks no TLS, or knows no such database', async () => {
    expect(await codeOf(`${server.url}?sslmode=require`)).toBe('tls');
    for (const name of ['no_such', 'certificates', 'ssl'])
      expect(await codeOf(server.url.replace(/postgres$/, name)), name).toBe('misconfigured');
  });

  it('gives up on a server that says nothing', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    undo.push(() => silent.close());
    const { port } = silent.address() as AddressInfo;
    expect(await codeOf(`postgres://ebb@127.0.0.1:${port}/postgres`)).toBe('timeout');
  });
});
