import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { endServer, freePort, startServer } from '../support/child-server.ts';
import { programPath } from '../support/programs.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';

export interface WatchedRedis {
  /** The first of its Sentinels is not there. */
  url: string;
  master: RedisServer;
  replica: RedisServer;
  close(): Promise<void>;
}

/** A real master with a replica, watched by a Sentinel that takes half a second to call it dead. */
export async function startWatchedRedis({ args = [] }: { args?: readonly string[] } = {}): Promise<WatchedRedis> {
  const master = await startRedisServer({ args });
  const replica = await startRedisServer({ args: [...args, '--replicaof', '127.0.0.1', `${master.port}`] });
  const [absent, port] = [await freePort(), await freePort()];
  const folder = await mkdtemp(join(tmpdir(), 'ebb-sentinel-'));
  const file = join(folder, 'sentinel.conf');
  const settings = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor main 127.0.0.1 ${master.port} 1`,
    'sentinel down-after-milliseconds main 500',
    'sentinel failover-timeout main 2000',
  ];
  await writeFile(file, settings.join('\n'));
  const sentinel = await startServer(programPath('redis-server'), [file, '--sentinel'], /monitor master main/);
  const client = new Redis({ port, retryStrategy: null, replyMapping: 'legacy' });
  client.on('error', () => {});
  const complete = async () => {
    const replicas = JSON.stringify(await client.call('SENTINEL', 'replicas', 'main'));
    if (!replicas.includes('"master-link-status","ok"')) throw new Error(`the Sentinel sees no replica: ${replicas}`);
  };
  await vi.waitFor(complete, { timeout: 50_000, interval: 50 });
  client.disconnect();
  return {
    url: `redis+sentinel://127.0.0.1:${absent},127.0.0.1:${port}/main`,
    master,
    replica,
    close: async () => {
      await endServer(sentinel, 'SIGKILL');
      await Promise.all([master.close(), replica.close()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
