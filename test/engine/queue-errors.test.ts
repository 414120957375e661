import { expect, test } from 'vitest';
import { createErrorLog } from '../../src/adapters/queue/job-queue.ts';
import { memoryLog } from '../support/memory-log.ts';

test('what a process that was stalled did to all its jobs is logged once, and an outage not at all', () => {
  const log = memoryLog();
  const report = createErrorLog({ engine: { isUnavailable: (error) => (error as Error).message === 'away' }, log });
  for (let job = 0; job < 1_500; job += 1) report(new Error(`could not renew lock for job c-p-${job}-1795352295000`));
  report(new Error('Missing lock for job 7. moveToFinished'));
  report(new Error('away'));
  report(new Error('something else'));
  expect(log.lines.map(({ message, fields }) => [message.split(':')[0], 'err' in fields])).toEqual([
    ['could not renew lock for job c-p-0-1795352295000', false],
    ['Missing lock for job 7. moveToFinished', false],
    ['queue error', true],
  ]);
});
