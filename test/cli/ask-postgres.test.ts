/** `--ask-postgres` on a real Postgres: who keeps a compute awake has a name. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';

const DAY_MS = 86_400_000;
const PASSWORD = 'geheim-4711';
const MINUTES = ['--minutes', '0.1'];

describeWith('postgres', '--ask-postgres', () => {
  let server: PostgresServer;
  let platform: Platform;
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let client: pg.Client;
  let polling: NodeJS.Timeout;

  beforeAll(async () => {
    server = await startPostgresServer();
    const createdAtMs = Date.now() - 60 * DAY_MS;
    const always = { createdAtMs, state: 'active' as const, load: [{ class: 'replication' as const, cu: 1 }] };
    platform = await startTestPlatform(
      { shop: { ...always, minCu: 1, maxCu: 1 }, docs: { createdAtMs, state: 'idle' } },
      { historyMs: 35 * DAY_MS },
    );
    client = new pg.Client({ connectionString: server.url, application_name: 'stock-poller' });
    await client.connect();
    await client.query(`CREATE ROLE someone LOGIN PASSWORD '${PASSWORD}'`);
    const poll = () => client.query(`SELECT 'secret-${PASSWORD}', 4711`);
    // Before anybody looks: until then the last query of the session is the one above.
    await poll();
    polling = setInterval(() => void poll(), 1_000);
  });
  afterAll(async () => {
    clearInterval(polling);
    await client?.end();
    await platform?.close();
    await server?.close();
  });
  beforeEach(async () => {
    folder = await makeFolder();
  });
  afterEach(() => folder.remove());

  async function ebb(args: readonly string[], databaseUrl?: string) {
    const env = { EBB_API_URL: platform.url, NEON_API_KEY: platform.apiKey };
    const child = startEbb(args, {
      cwd: folder.path,
      env: { ...env, ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }) },
    });
    const status = await child.ended;
    // The fleet has no organization.
    const stderr = child.stderr().replace(/^note: usage of [^\n]*\n/m, '');
    return { status, stdout: child.lines.join('\n'), stderr };
  }
  const withPassword = () => server.url.replace('ebb@', `ebb:${PASSWORD}@`);

  it('names the client, once a day, and shows no value and no password', async () => {
    const asked = await ebb(['awake', 'shop', '--ask-postgres', '--json', ...MINUTES], withPassword());
    expect(asked).toMatchObject({ status: 0, stderr: '' });
    const [finding] = JSON.parse(asked.stdout);
    expect(finding).toMatchObject({
      cause: 'clients',
      period_seconds: 1,
      clients: [
        {
          ...{ kind: 'periodic', user: 'ebb', application: 'stock-poller' },
          ...{ queries: [{ query_id: null, text: 'SELECT ?, ?' }], awake_share: 1 },
          period_seconds: expect.closeTo(1, 0),
        },
      ],
      asked: { statements: false, until: 'time', kept_awake_seconds: expect.any(Number) },
    });
    expect(finding.asked.kept_awake_seconds).toBeLessThanOrEqual(6);
    // Nothing listens there: the answer of today counts.
    const again = await ebb(['awake', 'shop', '--ask-postgres'], 'postgres://ebb@127.0.0.1:1/postgres');
    expect(again.stderr).toMatch(/^note: shop \/ ep-shop: asked before, on [^\n]*\n$/);
    expect(again.stdout).toContain('asks every 1s: user ebb, application stock-poller, SELECT ?, ?');
    expect(again.stdout).toContain('pg_stat_statements');
    const report = await ebb(['report', '--ask-postgres', '--source', 'nothing'], withPassword());
    expect(report).toMatchObject({ status: 1, stderr: expect.stringMatching(/^ebb: --source: [^\n]*\n$/) });
    const stored = await readFile(join(folder.path, '.ebb', 'asked-postgres.json'), 'utf8');
    expect([asked, again, report, stored].map((one) => JSON.stringify(one)).join()).not.toContain(PASSWORD);
  });

  it('is proposed by the report where nothing else tells why, and answers there', async () => {
    const before = await ebb(['report']);
    expect(before.stdout).toContain('--ask-postgres names the client');
    const source = `sources:\n  sql: { from: postgres, dsn_env: EBB_DSN_SQL }\n`;
    const sourced = await makeFolder({ 'ebb.yaml': source });
    const child = startEbb(['report', '--ask-postgres', '--source', 'sql', ...MINUTES], {
      cwd: sourced.path,
      env: { EBB_API_URL: platform.url, NEON_API_KEY: platform.apiKey, EBB_DSN_SQL: withPassword() },
    });
    expect(await child.ended).toBe(0);
    expect(child.lines.join('\n')).toMatch(
      /no setting helps: clients: asks every 1s: user ebb, application stock-poller/,
    );
    expect(child.lines.join('\n')).toMatch(/asked \d+ times in \d+s until .*: that kept it awake for \d+s \(/);
    await sourced.remove();
  });

  it('connects to no compute that sleeps', async () => {
    let connections = 0;
    const listener = createServer((socket) => {
      connections += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const asked = await ebb(['awake', 'docs', '--ask-postgres', ...MINUTES], `postgres://a@127.0.0.1:${port}/x`);
    listener.close();
    expect(asked).toMatchObject({ status: 1, stderr: expect.stringMatching(/^note: docs \/ ep-docs: it is asleep/) });
    expect(connections).toBe(0);
  });

  it.each<[string, string | undefined, RegExp, string?]>([
    ['without a connection string', undefined, /set DATABASE_URL/],
    ['with no connection string', 'geheim-4711', /DATABASE_URL: no connection string/],
    ['with that of the pooler', 'postgres://a:geheim-4711@ep-shop-pooler.example/x', /leads to the pooler/],
    ['with that of another server', 'postgres://a:geheim-4711@db.example/x', /leads to another server/],
    ['with one for any of several', 'postgres://a:geheim-4711@127.0.0.1/x', /name the one compute/, '*'],
    ['with an unknown role', 'postgres://nobody:geheim-4711@HERE/postgres', /role "nobody" does not exist/],
    ['without the right to see others', 'postgres://someone:geheim-4711@HERE/postgres', /GRANT pg_monitor/],
    ['without a server', 'postgres://a:geheim-4711@127.0.0.1:1/postgres', /ECONNREFUSED/],
  ])('says in one line what is wrong: %s', async (_name, url, problem, name = 'shop') => {
    const there = url?.replace('HERE', `127.0.0.1:${server.port}`);
    const { status, stderr } = await ebb(['awake', name, '--ask-postgres', ...MINUTES], there);
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(problem) });
    expect(stderr).toMatch(/^(ebb|note): [^\n]*\n$/);
    expect(stderr).not.toContain(PASSWORD);
  });
});
