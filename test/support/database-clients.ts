/**
 * Twelve classes of real clients of a real Postgres, with what is true of each: for tests of naming them. They come in virtual time, one
 * after the other, so that a busy machine changes nothing; the instants that Postgres shows are translated.
 */
import { spawn } from 'node:child_process';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type ClientSample, OWN_MARK, type SampledSession } from '../../src/domain/awake/client-activity.ts';
import type { NamedClient } from '../../src/domain/awake/clients.ts';
import { seededRandom } from '../../src/domain/random.ts';
import { endServer, onFreePort, startServer } from './child-server.ts';
import { ownerOf, type PostgresServer } from './postgres-server.ts';
import { findProgram, programPath } from './programs.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** What is true of a client. Milliseconds. */
export interface TrueClient {
  name: string;
  user: string;
  application: string;
  /** Matches the text of its queries; absent for replication. */
  query?: RegExp;
  periodMs?: number;
  /** When it was active. */
  visits: { fromMs: number; toMs: number }[];
}

const ROLES = ['app', 'owner', 'monitor', 'cron', 'metrics', 'analyst', 'bi', 'backup', 'replicator', 'dev', 'fn'];

/** A server with the extension, the roles and the tables of the clients. */
export async function prepareDatabase(server: PostgresServer): Promise<void> {
  await execute(server.url, [
    `ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`,
    'ALTER SYSTEM SET wal_level = logical',
  ]);
  await server.kill();
  await server.start();
  await execute(server.url, [
    'CREATE EXTENSION pg_stat_statements',
    ...ROLES.map((role) => `CREATE ROLE ${role} LOGIN SUPERUSER`),
    'CREATE TABLE orders (id int, total int)',
    'CREATE TABLE jobs (id int, state text)',
    'CREATE TABLE web_sessions (id int, expires_at timestamptz)',
    'CREATE TABLE schema_migrations (version bigint)',
    `SELECT pg_create_logical_replication_slot('feed', 'test_decoding')`,
  ]);
}

async function execute(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

/** pgbouncer in front of a server, one session of the server for each transaction. */
export async function startPooler(server: PostgresServer): Promise<{ url: string; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-pooler-'));
  const owner = process.getuid?.() === 0 ? ownerOf('postgres') : undefined;
  if (owner) await chown(folder, owner.uid, owner.gid);
  await writeFile(join(folder, 'users.txt'), ROLES.map((role) => `"${role}" ""\n`).join(''));
  const { port, started } = await onFreePort(async (on) => {
    const lines = [
      '[databases]',
      `postgres = host=127.0.0.1 port=${server.port}`,
      '[pgbouncer]',
      ...['listen_addr = 127.0.0.1', `listen_port = ${on}`, 'unix_socket_dir =', 'auth_type = trust'],
      ...[`auth_file = ${join(folder, 'users.txt')}`, 'pool_mode = transaction', 'max_client_conn = 500'],
      // By real time, which is not that of the clients.
      'server_check_query =',
    ];
    await writeFile(join(folder, 'pooler.ini'), `${lines.join('\n')}\n`);
    return startServer(programPath('pgbouncer'), [join(folder, 'pooler.ini')], /process up/, { ...owner, cwd: folder });
  });
  return {
    url: `postgres://ebb@127.0.0.1:${port}/postgres`,
    async close() {
      await endServer(started, 'SIGTERM');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Virtual time, in milliseconds from an arbitrary start: what is due is done, one after the other, when time is moved on. */
function createTimeline() {
  const due: { atMs: number; act: () => Promise<unknown> }[] = [];
  /** Pairs of real and virtual instants, both ascending. */
  const pairs: { realMs: number; atMs: number }[] = [];
  const realNow = () => performance.timeOrigin + performance.now();
  let nowMs = Number.NEGATIVE_INFINITY;
  const timeline = {
    now: () => nowMs,
    at: (atMs: number, act: () => Promise<unknown>) => void due.push({ atMs, act }),
    /** Acts at this instant: what Postgres says of real instants meanwhile was then. */
    async during<T>(atMs: number, act: () => Promise<T>): Promise<T> {
      nowMs = atMs;
      pairs.push({ realMs: realNow(), atMs });
      const result = await act();
      pairs.push({ realMs: realNow(), atMs });
      return result;
    },
    async moveTo(atMs: number): Promise<void> {
      for (;;) {
        due.sort((a, b) => a.atMs - b.atMs);
        if (due[0] === undefined || due[0].atMs > atMs) break;
        const next = due.shift();
        if (next) await timeline.during(next.atMs, next.act);
      }
      nowMs = atMs;
    },
    /** The virtual instant of a real one. */
    virtual(realMs: number): number {
      const index = pairs.findLastIndex((pair) => pair.realMs <= realMs);
      const [before, after] = [pairs[index], pairs[index + 1]];
      if (!before || !after) return (before ?? pairs[0])?.atMs ?? realMs;
      const part = (realMs - before.realMs) / Math.max(1e-6, after.realMs - before.realMs);
      return before.atMs + part * (after.atMs - before.atMs);
    },
  };
  return timeline;
}

type Timeline = ReturnType<typeof createTimeline>;

/** A sample with its instants in virtual time. */
export function inVirtualTime(sample: ClientSample, atMs: number, virtual: (realMs: number) => number): ClientSample {
  const sessions = sample.sessions.map((session): SampledSession => {
    const { transactionStartedAtMs: began } = session;
    return {
      ...session,
      startedAtMs: virtual(session.startedAtMs),
      queryStartedAtMs: virtual(session.queryStartedAtMs),
      stateSinceMs: virtual(session.stateSinceMs),
      ...(began !== undefined && { transactionStartedAtMs: virtual(began) }),
    };
  });
  return { ...sample, atMs, sessions };
}

interface World {
  /** The server's own connection string, and that of clients. */
  direct: string;
  url: string;
  /** Behind a pooler clients have no application name, and share two roles. */
  pooled: boolean;
  seed: number;
  fromMs: number;
  spanMs: number;
}

/** Plans all twelve, from 15 minutes before `fromMs` on. Their times are drawn from the seed. */
export async function planClients(world: World) {
  const { direct, pooled, fromMs, spanMs } = world;
  const timeline = createTimeline();
  const random = seededRandom(world.seed);
  const between = (low: number, high: number) => low + (high - low) * random();
  const seconds = (low: number, high: number) => SECOND * between(low, high);
  const truths: TrueClient[] = [];
  const endings: (() => unknown)[] = [];
  const control = new pg.Client({ connectionString: direct, application_name: OWN_MARK });
  await control.connect();
  endings.push(() => control.end());

  /** Waits until the server shows what it must. */
  const until = async (condition: string) => {
    for (;;) {
      const { rows } = await control.query(`SELECT /* ${OWN_MARK} */ 1 FROM pg_stat_activity WHERE ${condition}`);
      if (rows.length > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  const connect = async ({ user, application }: TrueClient, url = world.url) => {
    const at = new URL(url);
    at.username = user;
    const opened = new pg.Client({ connectionString: at.href, application_name: application });
    opened.on('error', () => undefined);
    await opened.connect();
    endings.push(() => opened.end());
    return opened;
  };
  const add = (given: Omit<TrueClient, 'visits'>, hides = pooled): TrueClient => {
    const user = hides ? (['app', 'owner'][Math.floor(2 * random())] ?? 'app') : given.user;
    const truth = { ...given, ...(hides && { user, application: '' }), visits: [] };
    truths.push(truth);
    return truth;
  };
  const visit = (truth: TrueClient, atMs: number, ask: () => Promise<unknown>) => {
    truth.visits.push({ fromMs: atMs, toMs: atMs });
    timeline.at(atMs, ask);
  };
  /** Visits at the period, each up to a share of it early or late. */
  const periodically = (truth: TrueClient, jitter: number, ask: () => Promise<unknown>) => {
    const { periodMs = MINUTE } = truth;
    const firstMs = fromMs - 14 * MINUTE + random() * periodMs;
    for (let atMs = firstMs; atMs <= fromMs + spanMs; atMs += periodMs) {
      visit(truth, atMs + jitter * periodMs * (2 * random() - 1), ask);
    }
  };
  const atStart = (act: () => Promise<unknown>) => timeline.at(fromMs - 15 * MINUTE, act);
  /** Connects, asks, and is gone when the next comes. */
  const brief = (truth: TrueClient, sql: string) => async () => {
    const opened = await connect(truth);
    const { rows } = await opened.query<{ pid: number }>(sql);
    await opened.end();
    if (!pooled)
      await until(`NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '${truth.application}'
      AND usename = '${truth.user}') LIMIT 1`);
    return rows;
  };
  const tools = {
    timeline,
    add,
    visit,
    periodically,
    atStart,
    brief,
    connect,
    until,
    seconds,
    between,
    endings,
    control,
  };
  planProbes(tools);
  planSessions(tools, { direct, fromMs, spanMs });
  planBackup(tools, { fromMs, spanMs });
  return {
    timeline,
    truths,
    async stop() {
      for (const end of endings) await end();
    },
  };
}

type Ask = () => Promise<unknown>;

interface Tools {
  timeline: Timeline;
  add(given: Omit<TrueClient, 'visits'>, hides?: boolean): TrueClient;
  visit(truth: TrueClient, atMs: number, ask: Ask): void;
  periodically(truth: TrueClient, jitter: number, ask: Ask): void;
  atStart(act: Ask): void;
  brief(truth: TrueClient, sql: string): Ask;
  connect(truth: TrueClient, url?: string): Promise<pg.Client>;
  until(condition: string): Promise<void>;
  seconds(low: number, high: number): number;
  between(low: number, high: number): number;
  endings: (() => unknown)[];
  control: pg.Client;
}

/** Those that come again and again. */
function planProbes({ add, periodically, atStart, brief, connect, seconds }: Tools): void {
  const health = add({
    ...{ name: 'health check', user: 'monitor', application: 'healthcheck', query: /^SELECT \?/ },
    periodMs: seconds(30, 120),
  });
  periodically(health, 0.02, brief(health, 'SELECT 1'));
  const cron = add({
    ...{ name: 'cron', user: 'cron', application: 'purge', query: /DELETE FROM web_sessions/ },
    periodMs: seconds(180, 280),
  });
  periodically(cron, 0.01, brief(cron, 'DELETE FROM web_sessions WHERE expires_at < now()'));
  const serverless = add({
    ...{ name: 'serverless', user: 'fn', application: '', query: /FROM jobs WHERE/, periodMs: seconds(8, 25) },
  });
  periodically(serverless, 0.1, brief(serverless, `SELECT id FROM jobs WHERE state = 'new' LIMIT 10`));
  /** With sessions that stay open. */
  const pooling = (
    truth: TrueClient,
    sessions: number,
    jitter: number,
    ask: (pool: pg.Client[]) => Promise<unknown>,
  ) => {
    const pool: pg.Client[] = [];
    atStart(async () => {
      for (let index = 0; index < sessions; index += 1) pool.push(await connect(truth));
    });
    periodically(truth, jitter, () => ask(pool));
  };
  const keepalive = add({
    ...{ name: 'pool keepalive', user: 'app', application: 'orders-api', query: /^SELECT \?/ },
    periodMs: seconds(30, 60),
  });
  pooling(keepalive, 4, 0.02, (pool) => Promise.all(pool.map((one) => one.query('SELECT 1'))));
  const exporter = add({
    ...{ name: 'exporter', user: 'metrics', application: 'postgres_exporter', query: /pg_stat|pg_locks/ },
    periodMs: seconds(15, 30),
  });
  pooling(exporter, 1, 0.02, async ([one]) => {
    for (const view of ['pg_stat_database', 'pg_stat_bgwriter', 'pg_locks']) await one?.query(`SELECT * FROM ${view}`);
  });
  const bi = add({
    ...{ name: 'bi', user: 'bi', application: 'Metabase', query: /(sum|avg)\(total\)/, periodMs: seconds(60, 180) },
  });
  pooling(bi, 2, 0.03, async ([one, other]) => {
    for (const limit of [1, 2, 3]) {
      await one?.query(`SELECT sum(total) FROM orders WHERE id > ${limit}`);
      await other?.query(`SELECT avg(total) FROM generate_series(1, ${limit}) total`);
    }
  });
  const migrations = add({
    ...{
      name: 'migrations',
      user: 'owner',
      application: '',
      query: /FROM schema_migrations/,
      periodMs: seconds(45, 90),
    },
  });
  const versions = 'SELECT version FROM schema_migrations ORDER BY version DESC LIMIT 1';
  pooling(migrations, 1, 0.02, async ([one]) => one?.query(versions));
}

/** Those that stay connected. */
function planSessions(
  { timeline, add, visit, connect, until, between, endings }: Tools,
  { direct, fromMs, spanMs }: Pick<World, 'direct' | 'fromMs' | 'spanMs'>,
): void {
  const always = { fromMs: fromMs - 10 * MINUTE, toMs: fromMs + spanMs };
  const listen = add({ name: 'listen', user: 'app', application: 'worker', query: /^LISTEN/ });
  visit(listen, fromMs - MINUTE * between(6, 12), async () => (await connect(listen, direct)).query('LISTEN jobs'));
  const psql = add({ name: 'psql', user: 'dev', application: 'psql', query: /FROM jobs ORDER/ });
  visit(psql, fromMs - MINUTE * between(1, 8), async () => {
    await (await connect(psql, direct)).query('SELECT * FROM jobs ORDER BY id');
  });
  const open = add({ name: 'idle in transaction', user: 'analyst', application: 'notebook', query: /FROM orders/ });
  open.visits.push(always);
  timeline.at(always.fromMs, async () => {
    const opened = await connect(open);
    await opened.query('BEGIN');
    await opened.query('SELECT count(*) FROM orders WHERE total > 100');
  });
  const replication = add({ name: 'replication', user: 'replicator', application: 'pg_recvlogical' }, false);
  replication.visits.push(always);
  timeline.at(always.fromMs, async () => {
    const at = new URL(direct);
    at.username = replication.user;
    const args = ['-d', at.href, '--slot', 'feed', '--start', '--no-loop', '-f', '-'];
    const child = spawn(findProgram('pg_recvlogical') ?? '', args, { stdio: 'ignore' });
    endings.push(() => child.kill());
    await until(`backend_type = 'walsender' AND query LIKE 'START%'`);
  });
}

const DUMPED = ['orders', 'jobs', 'web_sessions', 'schema_migrations'];

/** One transaction that copies table after table for minutes; each copy waits for a lock until its time is over. */
function planBackup(
  { timeline, add, connect, until, between, control }: Tools,
  world: Pick<World, 'fromMs' | 'spanMs'>,
): void {
  const truth = add({ name: 'backup', user: 'backup', application: 'pg_dump', query: /^COPY/ });
  const beginMs = world.fromMs + between(0, 0.6) * world.spanMs;
  const eachMs = (SECOND * between(60, 180)) / DUMPED.length;
  truth.visits.push({ fromMs: beginMs, toMs: beginMs + DUMPED.length * eachMs });
  let copying: Promise<unknown> = Promise.resolve();
  let dump: pg.Client | undefined;
  const copy = async (index: number) => {
    await control.query(`SELECT /* ${OWN_MARK} */ pg_advisory_lock(${index})`);
    const sql = `COPY (SELECT pg_advisory_xact_lock_shared(${index}), t.* FROM (SELECT 1) one LEFT JOIN ${DUMPED[index]} t ON true) TO STDOUT`;
    copying = (dump as pg.Client).query(sql);
    await until(`wait_event = 'advisory'`);
  };
  timeline.at(beginMs, async () => {
    dump = await connect(truth);
    await dump.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await copy(0);
  });
  for (const index of DUMPED.keys()) {
    timeline.at(beginMs + (index + 1) * eachMs, async () => {
      await control.query(`SELECT /* ${OWN_MARK} */ pg_advisory_unlock(${index})`);
      await copying;
      if (index + 1 < DUMPED.length) return copy(index + 1);
      await dump?.query('COMMIT');
      return dump?.end();
    });
  }
}

/**
 * Compares names with what is true. A name is right if user and a query are those of a client, its application is that or absent (no
 * session of a client that connects for a moment is seen), and its period is within 15 %, or absent where the client has none. One name
 * is that of one client.
 * `namedShare`: of the time for which each client would keep the compute awake alone, summed over clients, the part of those that have a
 * right name.
 */
export function scoreNames(
  names: readonly NamedClient[],
  truths: readonly TrueClient[],
  { fromMs, toMs, timeoutMs }: { fromMs: number; toMs: number; timeoutMs: number },
) {
  const isRight = (name: NamedClient, truth: TrueClient) =>
    name.user === truth.user &&
    (name.application === undefined || name.application === truth.application) &&
    (truth.query ? name.queries.some(({ text }) => truth.query?.test(text)) : name.kind === 'replication') &&
    (truth.periodMs === undefined
      ? name.periodMs === undefined
      : Math.abs((name.periodMs ?? 0) - truth.periodMs) <= 0.15 * truth.periodMs);
  const covers = truths.map((truth) => {
    let [covered, untilMs] = [0, fromMs];
    for (const visit of truth.visits.toSorted((a, b) => a.fromMs - b.fromMs)) {
      const end = Math.min(toMs, visit.toMs + timeoutMs);
      covered += Math.max(0, end - Math.max(untilMs, visit.fromMs));
      untilMs = Math.max(untilMs, end);
    }
    return { truth, covered, isNamed: false };
  });
  // One name is that of one client.
  for (const name of names) {
    const found = covers.find(({ truth, covered, isNamed }) => covered > 0 && !isNamed && isRight(name, truth));
    if (found) found.isNamed = true;
  }
  const sumOf = (those: typeof covers) => those.reduce((sum, { covered }) => sum + covered, 0);
  const keepers = covers.filter(({ covered }) => covered > 0);
  return {
    namedShare: sumOf(keepers.filter(({ isNamed }) => isNamed)) / sumOf(keepers),
    names: names.length,
    wrong: names.filter((name) => !keepers.some(({ truth }) => isRight(name, truth))),
    missed: keepers.filter(({ isNamed }) => !isNamed).map(({ truth }) => truth.name),
  };
}
