import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { createJobQueue } from '../../src/adapters/queue/job-queue.ts';
import type { EngineState } from '../../src/ports/engine.ts';
import type { Job } from '../../src/ports/job-queue.ts';
import { freePort } from '../support/child-server.ts';
import { untilWorkedOff } from '../support/engine-daemon.ts';
import { openTestEngine } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { memoryLog } from '../support/memory-log.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { describeWith } from '../support/requirements.ts';

describeWith('postgres', 'a Postgres server that is not there', () => {
  it('is refused at the start in one line without a password', async () => {
    const port = await freePort();
    const opened = await openEngine({ url: `postgres://u:secret@127.0.0.1:${port}/db`, group: 'g', log: memoryLog() });
    const message = `cannot use Postgres at 127.0.0.1:${port}: connection refused; see that it runs, and that EBB_QUEUE_URL is right`;
    expect(opened).toMatchObject({ ok: false, error: { message } });
  });

  it('is reported once when it goes, fails what is asked at once, and is worked again when it is back', async () => {
    const server = await startPostgresServer();
    onTestFinished(() => server.close());
    const { engine, log } = await openTestEngine(server.url);
    const states: EngineState[] = [];
    engine.onStateChange((state) => states.push(state));
    const jobs: Job[] = [];
    const queue = createJobQueue({ engine, log, clock: systemClock(), onFailed: () => {} });
    let closed: Promise<void> | undefined;
    const close = () => (closed ??= queue.close(2000).then(() => engine.close()));
    onTestFinished(close);
    const handler = async (job: Job) => {
      jobs.push(job);
      return { kind: 'done' as const };
    };
    await queue.work('reconcile', handler, { concurrency: 2 });
    await queue.add('reconcile', { key: 'before', data: {} });
    await untilWorkedOff(queue);
    expect(jobs).toHaveLength(1);
    await server.kill();
    await expect(queue.counts()).rejects.toThrow('Postgres is not reachable');
    await eventually(() => states).toMatchObject([
      { up: false, message: expect.stringMatching(/^Postgres at .* is gone/) },
    ]);
    await server.start();
    await queue.add('reconcile', { key: 'after', data: {} });
    await eventually(() => jobs).toHaveLength(2);
    // It is up again once a write of its own has succeeded, which may come after the first job.
    await eventually(() => states).toMatchObject([{ up: false }, { up: true }]);
    expect(log.lines).toEqual([]);
    await close();
    expect(states).toHaveLength(2);
  });
});
