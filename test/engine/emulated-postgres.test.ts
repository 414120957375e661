/** Computes that are real servers: what the emulator says of connections is what Postgres says. */
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { afterEach, expect, it } from 'vitest';
import { findPostgres } from '../../src/emulator/postgres/data-folders.ts';
import { createSessionActivity } from '../../src/emulator/postgres/front.ts';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { compute, fleetOf } from '../emulator/support.ts';
import { describeWith } from '../support/requirements.ts';

let emulator: Emulator | undefined;
const clients: pg.Client[] = [];
afterEach(async () => {
  await Promise.allSettled(clients.splice(0).map((client) => client.end()));
  await emulator?.close();
  emulator = undefined;
});

async function start(...computes: ReturnType<typeof compute>[]): Promise<void> {
  const postgres = findPostgres();
  if (postgres === undefined) throw new Error('no Postgres');
  emulator = await startEmulator({ listen: { host: '127.0.0.1', port: 0 }, fleet: fleetOf(...computes), postgres });
}

async function send(method: string, url: string, body: object | undefined) {
  const headers = { authorization: `Bearer ${emulator?.apiKey}` };
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return JSON.parse(await response.text());
}

const call = (method: string, path: string, body?: object) => send(method, `${emulator?.url}${path}`, body);
const control = (method: string, path: string, body?: object) =>
  send(method, `${emulator?.origin}/_emulator${path}`, body);

/** Once no operation is open any more. */
async function whenUnlocked(method: string, path: string, body?: object): Promise<void> {
  await expect.poll(async () => (await call(method, path, body)).endpoint?.id, { timeout: 20_000 }).toBe('ep-web');
}

async function reported() {
  return (await control('GET', '/state')).computes[0];
}

/** A client that says when its connection is gone. */
async function connect(): Promise<{ client: pg.Client; ended: Promise<void> }> {
  const client = new pg.Client({ connectionString: (await reported()).postgres_url });
  clients.push(client);
  client.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  await client.connect();
  return { client, ended };
}

async function ask(client: pg.Client, sql: string): Promise<unknown> {
  const { rows } = await client.query({ text: sql, rowMode: 'array' });
  return rows[0]?.[0];
}

const COUNT = "SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'";

describeWith('postgres', 'computes that are real servers', () => {
  it('hold a client while the compute wakes, and count those that are really there', async () => {
    await start(compute({ id: 'ep-web' }));
    expect(await reported()).toMatchObject({ state: 'idle', connections: 0 });
    const { client } = await connect();
    expect(await ask(client, 'SELECT 6 * 7')).toBe(42);
    expect(await reported()).toMatchObject({ state: 'active', connections: 1 });
    expect(await control('POST', '/computes/ep-web/connect', { connections: 3 })).toMatchObject({ connections: 4 });
    await expect.poll(() => ask(client, COUNT)).toBe(4);
    expect(await control('POST', '/computes/ep-web/disconnect', {})).toMatchObject({ connections: 1 });
    await expect.poll(() => ask(client, COUNT)).toBe(1);
  });

  it('take a new size by a restart that cuts their sessions off and keeps their data', async () => {
    await start(compute({ id: 'ep-web', state: 'active', maxCu: 1, connections: 2 }));
    const { client, ended } = await connect();
    expect(await ask(client, 'SHOW max_connections')).toBe('450');
    await client.query('CREATE TABLE kept AS SELECT 1 AS one');
    await call('PATCH', '/projects/shop/endpoints/ep-web', { endpoint: { autoscaling_limit_max_cu: 2 } });
    await ended;
    const { client: again } = await connect();
    expect(await ask(again, 'SHOW max_connections')).toBe('901');
    expect(await ask(again, 'SELECT one FROM kept')).toBe(1);
    expect(await reported()).toMatchObject({ connections: 1, connections_dropped: 3, restarts: 1 });
  });

  it('suspend under clients that do nothing, and not under those that hold a transaction', async () => {
    await start(compute({ id: 'ep-web', suspendTimeoutSeconds: 60 }));
    const { client, ended } = await connect();
    await client.query('BEGIN');
    const jump = async () => {
      const { now } = await control('POST', '/clock', {});
      await control('POST', '/clock', { now: new Date(Date.parse(now) + 120_000).toISOString() });
    };
    await jump();
    expect(await ask(client, 'SELECT 1')).toBe(1);
    await client.query('COMMIT');
    await expect
      .poll(async () => (await call('GET', '/projects/shop/endpoints/ep-web')).endpoint.current_state)
      .toBe('active');
    await jump();
    await ended;
    await expect.poll(async () => (await reported()).state).toBe('idle');
    expect(await reported()).toMatchObject({ connections: 0, connections_dropped: 1 });
  });

  it('send clients away from a disabled compute, and from one that is deleted', async () => {
    await start(compute({ id: 'ep-web', state: 'active' }));
    const { ended } = await connect();
    await call('PATCH', '/projects/shop/endpoints/ep-web', { endpoint: { disabled: true } });
    await ended;
    await expect(connect()).rejects.toThrow('endpoint is disabled');
    await whenUnlocked('PATCH', '/projects/shop/endpoints/ep-web', { endpoint: { disabled: false } });
    const { client } = await connect();
    expect(await ask(client, 'SELECT 1')).toBe(1);
    const url = (await reported()).postgres_url;
    await whenUnlocked('DELETE', '/projects/shop/endpoints/ep-web');
    await expect(new pg.Client({ connectionString: url }).connect()).rejects.toThrow();
  });

  it('leave nothing behind', async () => {
    const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('ebb-pg-'));
    const before = new Set(folders());
    await start(compute({ id: 'ep-web', state: 'active' }));
    const [own] = folders().filter((name) => !before.has(name));
    await emulator?.close();
    expect(folders()).not.toContain(own);
  });
});

it('finds the end of an answer wherever the chunks are cut', () => {
  const text = Buffer.from('SSomething that holds a Z and more\0');
  const message = (type: string, body: Buffer): Buffer => {
    const head = Buffer.alloc(5);
    head.write(type);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const ready = (status: string): Buffer => message('Z', Buffer.from(status));
  const negotiation = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
  const answers = [
    Buffer.from('N'),
    message('R', Buffer.alloc(4)),
    message('D', text),
    ready('I'),
    ready('T'),
    message('1', Buffer.alloc(0)),
    ready('I'),
  ];
  const stream = Buffer.concat(answers);
  for (let size = 1; size <= stream.length; size += 1) {
    const changes: boolean[] = [];
    const activity = createSessionActivity((isBusy) => changes.push(isBusy));
    activity.fromClient(negotiation);
    activity.fromClient(Buffer.from('a longer first message'));
    for (let at = 0; at < stream.length; at += size) activity.fromServer(stream.subarray(at, at + size));
    expect(changes).toEqual([false, true, false]);
  }
});
