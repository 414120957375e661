import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createJobQueue } from '../../src/adapters/queue/job-queue.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Engine, EngineState } from '../../src/ports/engine.ts';
import type { Job } from '../../src/ports/job-queue.ts';
import { freePort } from '../support/child-server.ts';
import { untilWorkedOff } from '../support/engine-daemon.ts';
import { openTestEngine, refusal } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { type MemoryLog, memoryLog } from '../support/memory-log.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function open(url: string): Promise<{ engine: Engine; log: MemoryLog; states: EngineState[] }> {
  const { engine, log } = await openTestEngine(url);
  cleanups.push(() => engine.close());
  const states: EngineState[] = [];
  engine.onStateChange((state) => states.push(state));
  return { engine, log, states };
}

function workingQueue({ engine, log }: { engine: Engine; log: MemoryLog }) {
  const jobs: Job[] = [];
  const failed: string[] = [];
  const onFailed = (_queue: string, job: Job) => failed.push(job.id);
  const queue = createJobQueue({ engine, log, clock: systemClock(), onFailed });
  cleanups.push(() => queue.close(2000));
  const handler = async (job: Job) => {
    jobs.push(job);
    return { kind: 'done' as const };
  };
  return { queue, jobs, failed, work: () => queue.work('reconcile', handler, { concurrency: 2 }) };
}

describeWith('redis-server', 'a Redis that is not as it should be', () => {
  let guarded: RedisServer;
  beforeAll(async () => {
    guarded = await startRedisServer({ args: ['--requirepass', 'right-secret'] });
  });
  afterAll(() => guarded.close());

  it('is refused at the start in one line that says what to do', async () => {
    const port = await freePort();
    expect(await refusal(`redis://127.0.0.1:${port}`)).toBe(
      `cannot use Redis at 127.0.0.1:${port}: connection refused; see that it runs, and that EBB_QUEUE_URL is right`,
    );
    expect(await refusal('redis://no-such-host.invalid')).toContain(
      'cannot use Redis at no-such-host.invalid:6379: host not found; ',
    );
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    cleanups.push(() => silent.close());
    await eventually(() => silent.listening).toBe(true);
    const address = silent.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    expect(await refusal(`redis://127.0.0.1:${address.port}`)).toContain('no answer in time; ');
  });

  it('is refused for a wrong or missing password, and no message holds one', async () => {
    const wrong = await refusal(`redis://someone:wrong-secret@127.0.0.1:${guarded.port}`);
    expect(wrong).toContain(`cannot use Redis at 127.0.0.1:${guarded.port}: user or password is wrong; `);
    expect(wrong).not.toContain('secret');
    expect(await refusal(guarded.url)).toContain('it asks for a password; ');
    const { engine } = await open(`redis://:right-secret@127.0.0.1:${guarded.port}`);
    expect(await (await createStore({ engine, log: memoryLog() })).storeId()).not.toBe('');
  });
});

describeWith('redis-server', 'a Redis that goes away while workers run', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedisServer();
    cleanups.push(server.close);
  });

  it('is reported once, fails what is asked meanwhile at once, and is worked again when it is back', async () => {
    const opened = await open(server.url);
    const { queue, jobs, failed, work } = workingQueue(opened);
    const store = await createStore(opened);
    await work();
    await queue.add('reconcile', { key: 'before', data: { projectId: 'before' } });
    await untilWorkedOff(queue);
    expect(jobs).toHaveLength(1);
    await queue.addAt('reconcile', { id: 'r-later', atMs: Date.now() + 3_000, data: { projectId: 'later' } });

    await server.kill();
    await eventually(() => opened.states).toHaveLength(1);
    await expect(queue.add('reconcile', { key: 'x', data: {} })).rejects.toThrow('Redis is not reachable');
    await expect(queue.counts()).rejects.toThrow('Redis is not reachable');
    await expect(store.acquireLease('p-1', 'daemon', 1000)).rejects.toThrow('Redis is not reachable');

    await server.start();
    await eventually(() => opened.states).toHaveLength(2);
    expect(opened.states).toEqual([
      { up: false, message: `Redis at 127.0.0.1:${server.port} is gone: the connection was closed` },
      { up: true, message: `Redis at 127.0.0.1:${server.port} is back` },
    ]);
    await queue.add('reconcile', { key: 'after', data: { projectId: 'after' } });
    const projects = () => jobs.map(({ data }) => data.projectId).toSorted();
    await eventually(projects).toEqual(['after', 'before', 'later']);
    expect(failed).toEqual([]);
    expect(opened.log.lines).toEqual([]);
  });

  it('lets a daemon stop within its grace', async () => {
    const opened = await open(server.url);
    const { queue, work } = workingQueue(opened);
    await work();
    await server.kill();
    await eventually(() => opened.states).toHaveLength(1);
    await queue.close(1000);
    await opened.engine.close();
  });

  it('counts as gone when it is frozen', async () => {
    const opened = await open(server.url);
    const { queue, jobs, work } = workingQueue(opened);
    await work();
    server.signal('SIGSTOP');
    cleanups.push(() => server.signal('SIGCONT'));
    await expect(queue.counts()).rejects.toThrow('Redis is not reachable');
    await eventually(() => opened.states).toMatchObject([{ up: false }]);
    server.signal('SIGCONT');
    await eventually(() => opened.states).toMatchObject([{ up: false }, { up: true }]);
    await queue.add('reconcile', { key: 'later', data: {} });
    await eventually(() => jobs).toHaveLength(1);
    expect(opened.log.lines).toEqual([]);
  });
});
