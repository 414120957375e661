import { once } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { askRedis, engineDaemon, untilWorkedOff } from '../support/engine-daemon.ts';
import { openTestEngine, refusal } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { startWatchedRedis, type WatchedRedis } from './redis-sentinel.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function daemonOn(url: string) {
  const daemon = await engineDaemon(url);
  cleanups.push(daemon.close);
  return daemon;
}

describeWith('redis-server', 'Redis by Sentinels', () => {
  let watched: WatchedRedis;
  beforeEach(async () => {
    watched = await startWatchedRedis();
    cleanups.push(watched.close);
  });

  it('is refused at the start when no Sentinel answers or none knows the name', async () => {
    const unknown = watched.url.replace('/main', '/other');
    expect(await refusal(unknown)).toContain('/other: the Sentinels know no primary of this name; ');
    expect(await refusal('redis+sentinel://:secret@127.0.0.1:1/main')).toBe(
      'cannot use Redis at 127.0.0.1:1/main: no Sentinel answers; see that it runs, and that EBB_QUEUE_URL is right',
    );
    const sentinelPort = /:(\d+)\/main$/.exec(watched.url)?.[1];
    expect(await refusal(`redis://127.0.0.1:${sentinelPort}`)).toContain('it is a Sentinel; write redis+sentinel://');
    expect(await refusal(watched.replica.url)).toContain('it is a read-only replica: name the primary');
  });

  it('goes on at the replica, with what was stored and queued, when the master dies', async () => {
    const { addJob, queue, store, states, done, failed, log } = await daemonOn(watched.url);
    const id = await store.storeId();
    await addJob('before');
    await untilWorkedOff(queue);
    expect(done).toEqual(['before']);
    await queue.addAt('reconcile', { id: 'r-later', atMs: Date.now() + 3_000, data: { projectId: 'later' } });
    await untilReplicated(watched);

    await watched.master.kill();
    await eventually(() => states).toMatchObject([{ up: false }]);
    await expect(store.timeMs()).rejects.toThrow('Redis is not reachable');
    await eventually(() => states).toMatchObject([{ up: false }, { up: true }]);
    expect(await store.storeId()).toBe(id);
    expect(await store.acquireLease('project-1', 'daemon-1', 15_000)).toBeDefined();
    await addJob('after');
    await eventually(() => done.toSorted()).toEqual(['after', 'before', 'later']);
    expect(failed).toEqual([]);
    expect(log.lines).toEqual([]);
  });
});

describeWith('redis-server', 'a Redis Cluster', () => {
  let cluster: RedisCluster;
  beforeEach(async () => {
    cluster = await startRedisCluster();
    cleanups.push(cluster.close);
  });

  it('is refused at the start when a node is named as if it were alone', async () => {
    expect(await refusal(cluster.nodes[0]?.url ?? '')).toContain('it is part of a Cluster; write redis+cluster://');
    expect(await refusal('redis+cluster://127.0.0.1:1,127.0.0.1:2')).toContain('no node answers; ');
  });

  it('is found from any one of its nodes, and told to be down while the node that counts is', async () => {
    const { addJob, queue, store, states, done, failed, log } = await daemonOn(
      `redis+cluster://127.0.0.1:1,127.0.0.1:${cluster.nodes[0]?.port}`,
    );
    await addJob('before');
    await untilWorkedOff(queue);
    expect(done).toEqual(['before']);
    const node = await nodeWithKeys(cluster);
    await node.kill();
    await eventually(() => states).toMatchObject([{ up: false }]);
    await expect(store.storeId()).rejects.toThrow(/^Redis (is not reachable|does not work: the cluster is down)$/);
    await node.start();
    await eventually(() => states).toMatchObject([{ up: false }, { up: true }]);
    await addJob('after');
    await eventually(() => done).toEqual(['before', 'after']);
    expect(failed).toEqual([]);
    expect(log.lines).toEqual([]);
  });

  it('is connected again by a worker that rested, as soon as the connection has ended or before', async () => {
    const { engine } = await openTestEngine(cluster.url);
    cleanups.push(engine.close);
    if (engine.kind !== 'redis') throw new Error('not on Redis');
    const connection = engine.openWorkerConnection();
    await once(connection, 'ready');
    // So that one node has a connection, and the others, which end at once, have none.
    const use = () => connection.set('key', 'value');
    await use();
    const nodes = 'nodes' in connection ? connection.nodes() : [];
    const nodesEnd = Promise.all(nodes.map(async (node) => node.status === 'end' || once(node, 'end')));
    connection.disconnect();
    await once(connection, 'end');
    await nodesEnd;
    expect(connection.status).toBe('end');
    await connection.connect();
    await use();
    connection.disconnect();
    await once(connection, 'end');
    await connection.connect();
    await use();
    const ended = once(connection, 'end');
    connection.disconnect();
    await Promise.all([ended, connection.connect()]);
    await use();
  });
});

/** Replication lags behind: waits until the replica has what was written so far. */
async function untilReplicated({ master, replica }: WatchedRedis): Promise<void> {
  const offset = async (server: RedisServer, field: string) =>
    new RegExp(`${field}:(\\d+)`).exec(await askRedis(server.url, (client) => client.info('replication')))?.[1];
  const written = Number(await offset(master, 'master_repl_offset'));
  await eventually(async () => Number(await offset(replica, 'slave_repl_offset')) >= written).toBe(true);
}

async function nodeWithKeys(cluster: RedisCluster): Promise<RedisServer> {
  for (const node of cluster.nodes) if ((await askRedis(node.url, (client) => client.dbsize())) > 0) return node;
  throw new Error('no node has keys');
}
