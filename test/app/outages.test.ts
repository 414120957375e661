import { describe, expect, it } from 'vitest';
import { applyAction } from '../../src/app/apply/apply.ts';
import { evaluateCompute } from '../../src/app/evaluate-project/evaluate.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createOutages, reportApiError, reportWriteError } from '../../src/app/telemetry/outages.ts';
import type { ControlApiErrorCode } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, currentRules, FREE_SLOTS, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

function theOutages() {
  const log = memoryLog();
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  const outages = createOutages({ log, metrics }, { now: () => 7_000 });
  return {
    ...{ outages, log },
    fail: (projectId: string | undefined, code: ControlApiErrorCode = 'unavailable') =>
      reportApiError({ outages }, projectId, { code, route: 'GET endpoints', status: 500, message: 'internal error' }),
    failToWrite: (projectId: string, code: ControlApiErrorCode) =>
      reportWriteError({ outages }, projectId, { code, route: 'PATCH endpoint', message: 'no' }),
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

  it('is remembered with its end, if it was an outage of all', () => {
    const { outages, fail, answer } = theOutages();
    fail(undefined);
    expect(outages.ended().size).toBe(0);
    answer('p-one');
    expect([...outages.ended()]).toEqual([['control API', { message: expect.stringContaining('500'), atMs: 7_000 }]]);
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

describe('a write that fails', () => {
  it('refuses no project where it is tried again, or where its compute is at fault', () => {
    const { log, failToWrite, answer } = theOutages();
    for (const code of [
      'unavailable',
      'timeout',
      'throttled',
      'locked',
      'not_ready',
      'invalid',
      'malformed',
    ] as const) {
      failToWrite('p-one', code);
      answer('p-one');
    }
    expect(log.lines).toEqual([]);
  });

  it.each(['forbidden', 'not_found'] as const)('is a refusal if the answer is that (%s)', (code) => {
    const { log, failToWrite } = theOutages();
    failToWrite('p-one', code);
    expect(log.lines.map(({ fields }) => fields)).toEqual([{ event: 'ebb.project_refused', project: 'p-one' }]);
  });

  it('counts as a sign of an outage, as a failed reading does', () => {
    const { outages, fail, failToWrite } = theOutages();
    failToWrite('p-one', 'timeout');
    expect(outages.current().size).toBe(0);
    fail('p-two');
    expect([...outages.current().keys()]).toEqual(['control API']);
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

it('a change that is answered with 500 leaves the project as it is: its own lines say what became of it', async () => {
  const { outages, log } = theOutages();
  const compute = aCompute();
  const record = aRecord();
  const rules = currentRules(aSchedule({ windows: [], otherwise: { size: { minCu: 8, maxCu: 8 } } }));
  const error = { code: 'unavailable', route: 'PATCH', status: 500, message: 'no', outcomeUnknown: true };
  const deps = {
    ...{
      clock: REAL.clock,
      newId: REAL.newId,
      fleet: createFleet({ clock: REAL.clock }),
      rules,
      mode: 'enforce',
      outages,
    },
    ...{ overrides: { holds: [], freezes: [] }, samples: { historyOf: () => [] }, reportEvent() {} },
    telemetry: { log, metrics: { increment() {}, set() {}, clear() {}, observe() {} } },
    slots: FREE_SLOTS,
    mayWrite: async () => ({ ok: true }),
    api: { updateCompute: async () => ({ ok: false, error }) },
    store: { putIntent: async () => 'stored', putRecord: async () => true },
  };
  const evaluated = evaluateCompute(deps as never, { compute, record, projectBusy: false });
  const lease = { name: compute.projectId, holder: 'd', token: 1 };
  await applyAction(deps as never, lease, evaluated, { decidedBy: { overrides: '', generation: 1 } });
  expect(log.lines).toEqual([]);
});
