import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { askRedis, engineDaemon, untilWorkedOff } from '../support/engine-daemon.ts';
import { eventually } from '../support/eventually.ts';
import { memoryLog } from '../support/memory-log.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describeWith('redis-server', 'a Redis that is there and does not work', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedisServer();
    cleanups.push(server.close);
  });

  const ask = (question: (client: Redis) => Promise<unknown>) => askRedis(server.url, question);

  async function start() {
    const daemon = await engineDaemon(server.url);
    cleanups.push(daemon.close);
    const before = await daemon.store.storeId();
    await daemon.addJob('before');
    await untilWorkedOff(daemon.queue);
    expect(daemon.done).toEqual(['before']);
    await daemon.queue.addAt('reconcile', { id: 'r-1', atMs: Date.now() + 2_000, data: { projectId: 'meanwhile' } });
    return { ...daemon, before };
  }

  /** Everything is worked off that was asked for, nothing failed, and nothing was said twice. */
  async function expectRecovered(daemon: Awaited<ReturnType<typeof start>>): Promise<void> {
    await eventually(() => daemon.states.map(({ up }) => up)).toEqual([false, true]);
    await daemon.addJob('after');
    await eventually(() => daemon.done.toSorted()).toEqual(['after', 'before', 'meanwhile']);
    expect(await daemon.store.storeId()).toBe(daemon.before);
    expect(await daemon.store.acquireLease('healed', 'daemon-1', 1)).toBeDefined();
    expect(daemon.failed).toEqual([]);
    expect(daemon.log.lines).toEqual([]);
  }

  it('is logged once when it is full, lets nothing be claimed, and works again when there is room', async () => {
    const daemon = await start();
    const lease = await daemon.store.acquireLease('project-1', 'daemon-1', 60_000);
    await ask((client) => client.config('SET', 'maxmemory', '100kb'));
    const message = `Redis at 127.0.0.1:${server.port} does not work: it is out of memory: raise its maxmemory`;
    await eventually(() => daemon.states).toEqual([{ up: false, message }]);
    const problem = 'Redis does not work: it is out of memory';
    await expect(daemon.store.acquireLease('project-2', 'daemon-1', 1000)).rejects.toThrow(problem);
    await expect(daemon.addJob('refused')).rejects.toThrow(problem);
    if (lease === undefined) throw new Error('the lease was held');
    expect(await daemon.store.renewLease(lease, 60_000)).toBe(true);
    await ask((client) => client.config('SET', 'maxmemory', '0'));
    await expectRecovered(daemon);
  });

  it('is logged once when it became a read-only replica, and works again when it is a primary', async () => {
    const daemon = await start();
    await ask((client) => client.replicaof('127.0.0.1', 1));
    await eventually(() => daemon.states).toHaveLength(1);
    expect(daemon.states[0]).toMatchObject({ up: false });
    await expect(daemon.store.acquireLease('project-3', 'daemon-1', 1000)).rejects.toThrow(
      /^Redis (does not work|is not)/,
    );
    await ask((client) => client.replicaof('NO', 'ONE'));
    await expectRecovered(daemon);
  });

  it('is logged once when it accepts writes and never answers them', async () => {
    const daemon = await start();
    await ask((client) => client.client('PAUSE', 60_000, 'WRITE'));
    await eventually(() => daemon.states).toHaveLength(1);
    await expect(daemon.store.acquireLease('project-4', 'daemon-1', 1000)).rejects.toThrow('Redis is not reachable');
    await ask((client) => client.client('UNPAUSE'));
    await expectRecovered(daemon);
  });

  it('shows another store id when it comes back empty, and works what is added then', async () => {
    const daemon = await start();
    await ask((client) => client.flushall());
    await server.kill();
    await eventually(() => daemon.states.map(({ up }) => up)).toEqual([false]);
    await server.start();
    await eventually(() => daemon.states.map(({ up }) => up)).toEqual([false, true]);
    expect(await daemon.store.storeId()).not.toBe(daemon.before);
    expect(await daemon.store.projectIds()).toEqual([]);
    await daemon.addJob('after');
    await eventually(() => daemon.done).toContain('after');
    expect(daemon.failed).toEqual([]);
    expect(daemon.log.lines).toEqual([]);
  });

  it('is warned about once at the start when it may throw keys away, and not on the console', async () => {
    await ask((client) => client.config('SET', 'maxmemory-policy', 'allkeys-lru'));
    const daemon = await engineDaemon(server.url);
    cleanups.push(daemon.close);
    await daemon.addJob('evictable');
    await eventually(() => daemon.done).toEqual(['evictable']);
    expect(daemon.log.lines).toEqual([
      {
        level: 'warn',
        fields: { policy: 'allkeys-lru' },
        message: expect.stringContaining('its maxmemory-policy is allkeys-lru; set it to noeviction'),
      },
    ]);
  });
});

describeWith('redis-server', 'a Redis that is full at the start', () => {
  it('is refused with what to do', async () => {
    const full = await startRedisServer({ args: ['--maxmemory', '100kb'] });
    cleanups.push(full.close);
    const opened = await openEngine({ url: full.url, group: 'test', log: memoryLog() });
    expect(opened.ok || opened.error.message).toContain('it is out of memory: raise its maxmemory');
  });
});
