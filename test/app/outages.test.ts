import { describe, expect, it } from 'vitest';
import { createOutages, reportApiError } from '../../src/app/telemetry/outages.ts';
import type { ControlApiErrorCode } from '../../src/ports/control-api.ts';
import { memoryLog } from '../support/memory-log.ts';

function theOutages() {
  const log = memoryLog();
  const outages = createOutages({ log, metrics: { increment() {}, set() {}, clear() {}, observe() {} } });
  return {
    ...{ outages, log },
    fail: (projectId: string | undefined, code: ControlApiErrorCode = 'unavailable') =>
      reportApiError({ outages }, projectId, { code, route: 'GET endpoints', status: 500, message: 'internal error' }),
    answer: (projectId: string) => {
      outages.projectAnswers(projectId);
      outages.up('control API');
    },
  };
}

describe('one project that always gets 500', () => {
  it('is named once, and is no outage, however often it fails while others answer', () => {
    const { outages, log, fail, answer } = theOutages();
    for (let round = 0; round < 5; round += 1) {
      fail('p-broken');
      answer('p-one');
      answer('p-two');
    }
    expect(outages.current().size).toBe(0);
    expect(log.lines.map(({ fields }) => fields)).toEqual([{ event: 'ebb.project_refused', project: 'p-broken' }]);
    answer('p-broken');
    expect(log.lines.at(-1)?.fields).toEqual({ event: 'ebb.project_recovered', project: 'p-broken' });
  });

  it('does not make an outage together with another that fails once', () => {
    const { outages, fail, answer } = theOutages();
    fail('p-broken');
    answer('p-one');
    fail('p-broken');
    fail('p-one', 'timeout');
    fail('p-broken');
    expect(outages.current().size).toBe(0);
  });
});

describe('the control API', () => {
  it('is down when two projects fail with no answer in between, or the list of projects does', () => {
    for (const failing of [['p-one', 'p-two'], [undefined]]) {
      const { outages, log, fail, answer } = theOutages();
      for (const projectId of failing) fail(projectId);
      expect([...outages.current().keys()]).toEqual(['control API']);
      expect(log.lines.filter(({ message }) => message.startsWith('control API is not available'))).toHaveLength(1);
      fail('p-three');
      answer('p-one');
      expect(outages.current().size).toBe(0);
      expect(log.lines.at(-1)?.message).toMatch(/available again$/);
    }
  });
});
