import { createStore } from '../src/adapters/store/create-store.ts';
import type { HistoryEntry } from '../src/domain/records/history.ts';
import type { Engine } from '../src/ports/engine.ts';
import type { AuditQuery, Store } from '../src/ports/store.ts';
import { openTestEngine } from '../test/support/engines.ts';
import { startPostgresServer } from '../test/support/postgres-server.ts';
import { findProgram, missing, type Requirement } from '../test/support/programs.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { medianMs, printTable } from './figures.ts';

const COMPUTES = 1_000;
const CHANGES_A_DAY = 10;
const DAY_MS = 86_400_000;
const RUNS = 20;

const ENGINES: readonly { name: string; needs: Requirement; days: number; start: typeof startPostgresServer }[] = [
  { name: 'Postgres', needs: 'postgres', days: 365, start: startPostgresServer },
  { name: 'Redis', needs: 'redis-server', days: 30, start: startRedisServer as typeof startPostgresServer },
];

/** How much room the audit takes after all the time that it is kept, and how soon a question is answered. */
export async function run(): Promise<void> {
  const rows: string[][] = [];
  for (const { name, needs, days, start } of ENGINES) {
    if (findProgram(needs) === undefined) {
      process.stdout.write(`${name} is left out: ${missing(needs)}\n`);
      continue;
    }
    const server = await start();
    const { engine, log } = await openTestEngine(server.url);
    try {
      rows.push([name, `${days}`, ...(await measure(engine, await createStore({ engine, log }), days))]);
    } finally {
      await engine.close();
      await server.close();
    }
  }
  const questions = ['one compute, 30 days', 'one compute, all', 'last 24 h of all', 'page of 1,000'];
  printTable(['store', 'days', 'entries', 'bytes', 'bytes an entry', 'entries added/s', ...questions], rows);
}

async function measure(engine: Engine, store: Store, days: number): Promise<string[]> {
  const endMs = Date.now();
  const sinceMs = endMs - days * DAY_MS;
  const before = await bytesOf(engine);
  const startedMs = performance.now();
  for (let change = 0; change < days * CHANGES_A_DAY; change += 1) {
    const atMs = sinceMs + (change * DAY_MS) / CHANGES_A_DAY;
    const round = Array.from({ length: COMPUTES }, (_, compute) => entryOf(compute, atMs + compute * 7, change));
    if (engine.kind === 'redis') await Promise.all(round.map((entry) => store.appendHistory([entry])));
    else await store.appendHistory(round);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  if (engine.kind === 'postgres') await engine.pool.query('VACUUM ANALYZE ebb_audit');
  const bytes = (await bytesOf(engine)) - before;
  const entries = days * CHANGES_A_DAY * COMPUTES;
  const all = { sinceMs, untilMs: endMs, limit: 1000 };
  const computeId = idOf(77);
  const ask = async (query: AuditQuery) => {
    let found = 0;
    for (let after: string | undefined; ; ) {
      const page = await store.audit({ ...query, after });
      found += page.entries.length;
      after = page.next;
      if (after === undefined) return found;
    }
  };
  const timed = async (query: AuditQuery) => {
    const found = await ask(query);
    return `${(await medianMs(RUNS, async () => void (await ask(query)))).toFixed(1)} ms (${found})`;
  };
  return [
    `${entries}`,
    `${(bytes / 1e6).toFixed(0)} MB`,
    (bytes / entries).toFixed(0),
    (entries / seconds).toFixed(0),
    await timed({ ...all, computeId, sinceMs: endMs - 30 * DAY_MS }),
    await timed({ ...all, computeId }),
    await timed({ ...all, sinceMs: endMs - DAY_MS }),
    `${(await medianMs(RUNS, async () => void (await store.audit(all)))).toFixed(1)} ms`,
  ];
}

/** Table and indexes, or memory. */
async function bytesOf(engine: Engine): Promise<number> {
  if (engine.kind === 'postgres') {
    const { rows } = await engine.pool.query<{ bytes: unknown }>(`SELECT pg_total_relation_size('ebb_audit') AS bytes`);
    return Number(rows[0]?.bytes);
  }
  return Number(/used_memory:(\d+)/.exec(await engine.commands.info('memory'))?.[1]);
}

function idOf(compute: number): string {
  return `ep-cool-sea-${String(compute).padStart(8, '0')}`;
}

function entryOf(compute: number, atMs: number, change: number): HistoryEntry {
  const [small, large] = [
    { minCu: 0.25, maxCu: 1 },
    { minCu: 1, maxCu: 4 },
  ];
  const opens = change % 2 === 0;
  return {
    ...{ atMs, projectId: `shop-${compute}`, computeId: idOf(compute), kind: 'write', policy: 'team-web/office-hours' },
    ...{ setHash: 'a'.repeat(64), revision: '3aca383f0c', owner: 'team-web' },
    requestId: `6f1c09ab-77de-4f00-8c0e-${String(change).padStart(12, '0')}`,
    ...(opens ? { from: small, to: large } : { from: large, to: small }),
    reasons: [
      {
        code: opens ? 'window_open' : 'otherwise',
        policy: 'team-web/office-hours',
        message: `size ${opens ? '0.25-1 → 1-4' : '1-4 → 0.25-1'} CU: the window "mon-fri 08:00-18:00" ${opens ? 'is open' : 'is closed'}`,
      },
    ],
  };
}
