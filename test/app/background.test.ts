import { expect, it } from 'vitest';
import { createRunInBackground, StoppedError } from '../../src/app/background.ts';
import { EngineUnavailableError } from '../../src/ports/engine.ts';
import { memoryLog } from '../support/memory-log.ts';

function aDaemon() {
  const log = memoryLog();
  const counted: unknown[] = [];
  const metrics = {
    increment: (name: string, labels: object) => void counted.push([name, labels]),
    set() {},
    clear() {},
    observe() {},
  };
  const runInBackground = createRunInBackground({ log, metrics });
  return {
    counted,
    said: () => log.lines.map(({ fields, message }) => ({ ...fields, message })),
    works: () => runInBackground('leader_refresh', async () => {}),
    fails: (error: unknown, task: 'leader_refresh' | 'triggers' = 'leader_refresh') =>
      runInBackground(task, () => Promise.reject(error)),
  };
}

it('counts each failure of a recurring task, and says with its causes when it begins to fail and when it works again', async () => {
  const { said, counted, works, fails } = aDaemon();
  await works();
  await fails(new Error('the round failed', { cause: new Error('no such key', { cause: 'of the store' }) }));
  await fails(new Error('again'));
  await works();
  await works();
  await fails(new Error('another time'));
  expect(said()).toMatchObject([
    {
      event: 'ebb.background_failed',
      task: 'leader_refresh',
      message: 'background task leader_refresh failed and will be retried: the round failed: no such key: of the store',
    },
    { event: 'ebb.background_recovered', task: 'leader_refresh' },
    {
      event: 'ebb.background_failed',
      message: 'background task leader_refresh failed and will be retried: another time',
    },
  ]);
  expect(counted).toEqual(
    Array.from({ length: 3 }, () => ['ebb_background_failures_total', { task: 'leader_refresh' }]),
  );
});

it('says of each task that it fails, whatever else does', async () => {
  const { said, fails } = aDaemon();
  await fails(new Error('one'));
  await fails(new Error('two'), 'triggers');
  expect(said()).toMatchObject([{ task: 'leader_refresh' }, { task: 'triggers' }]);
});

it('keeps quiet about an engine that is away, which has said so itself, and about nothing else', async () => {
  const { said, counted, works, fails } = aDaemon();
  const away = new EngineUnavailableError('Redis is not reachable');
  await fails(away);
  await fails(new Error('no trigger was put', { cause: away }));
  await works();
  expect([said(), counted]).toEqual([[], []]);
  await fails(new Error('Redis is not reachable'));
  expect(said()).toHaveLength(1);
});

it('a round that a stop of the daemon has aborted has not failed', async () => {
  const { said, counted, fails } = aDaemon();
  await fails(new Error('reading usage', { cause: new StoppedError() }));
  await fails(new StoppedError());
  expect([said(), counted]).toEqual([[], []]);
});
