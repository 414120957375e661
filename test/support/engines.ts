import { Cluster } from 'ioredis';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import type { Engine } from '../../src/ports/engine.ts';
import { embeddedFolder } from './embedded-folder.ts';
import { type MemoryLog, memoryLog } from './memory-log.ts';
import { startPostgresServer } from './postgres-server.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { startRedisServer } from './redis-server.ts';

/** An open engine, and a way to make it as good as new: the start of an embedded one takes seconds. */
export interface TestEngine {
  engine: Engine;
  log: MemoryLog;
  reset(): Promise<void>;
  close(): Promise<void>;
}

export async function openTestEngine(url: string, group = 'test'): Promise<Omit<TestEngine, 'close'>> {
  const log = memoryLog();
  const opened = await openEngine({ url, group, log });
  if (!opened.ok) throw new Error(opened.error.message);
  const { engine } = opened;
  return { engine, log, reset: () => empty(engine) };
}

/** The message with which an engine is not opened. */
export async function refusal(url: string): Promise<string> {
  const opened = await openEngine({ url, group: 'test', log: memoryLog() });
  if (opened.ok) throw new Error(`${url} was opened`);
  return opened.error.message;
}

export async function redisTestEngine(): Promise<TestEngine> {
  const server = await startRedisServer();
  const opened = await openTestEngine(server.url);
  return { ...opened, close: () => opened.engine.close().then(server.close) };
}

export async function redisClusterTestEngine(): Promise<TestEngine> {
  const cluster = await startRedisCluster();
  const opened = await openTestEngine(cluster.url);
  return { ...opened, close: () => opened.engine.close().then(cluster.close) };
}

export async function embeddedTestEngine(): Promise<TestEngine> {
  const folder = await embeddedFolder();
  const opened = await openTestEngine(`embedded:${folder.path}`);
  return { ...opened, close: () => opened.engine.close().then(folder.remove) };
}

export async function postgresTestEngine(): Promise<TestEngine> {
  const server = await startPostgresServer();
  const opened = await openTestEngine(server.url);
  return { ...opened, close: () => opened.engine.close().then(server.close) };
}

async function empty(engine: Engine): Promise<void> {
  if (engine.kind === 'redis') {
    const { commands } = engine;
    const masters = commands instanceof Cluster ? commands.nodes('master') : [commands];
    for (const master of masters) await master.flushall();
    return;
  }
  const { rows } = await engine.pool.query<{ name: string }>(
    `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = $1 AND tablename <> 'migration'`,
    [engine.schema],
  );
  // There are few rows, and TRUNCATE makes new files for every table.
  await engine.pool.query(rows.map(({ name }) => `DELETE FROM ${name};`).join(' '));
}
