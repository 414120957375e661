import { describe, expect, it } from 'vitest';
import { applyAction } from '../../src/app/apply/apply.ts';
import { evaluateCompute } from '../../src/app/evaluate-project/evaluate.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import {
  concernsAccount,
  controlApiFor,
  createOutages,
  listOf,
  reportApiError,
  reportListing,
  reportWriteError,
} from '../../src/app/telemetry/outages.ts';
import type { ControlApiErrorCode } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, currentRules, FREE_SLOTS, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

function theOutages() {
  const log = memoryLog();
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  const time = { ms: 7_000 };
  const outages = createOutages({ log, metrics }, { now: () => time.ms, monotonicMs: () => time.ms });
  const get = { route: 'GET endpoints', status: 500, message: 'internal error' };
  return {
    ...{ outages, log, time },
    events: () => log.lines.map(({ fields }) => Object.values(fields).join(' ')),
    fail: (projectId: string | undefined, code: ControlApiErrorCode = 'unavailable', account = 'main') =>
      reportApiError({ outages }, projectId === undefined ? undefined : { projectId, account }, { ...get, code }),
    /** A request that began at that time has failed. */
    failSince: (projectId: string | undefined, beganAtMonotonicMs: number, account = 'main') => {
      const error = { ...get, code: 'unavailable', beganAtMonotonicMs } as const;
      reportApiError({ outages }, projectId === undefined ? undefined : { projectId, account }, error);
    },
    failToWriteSince: (projectId: string, beganAtMonotonicMs: number) =>
      reportWriteError(
        { outages },
        { projectId, account: 'main' },
        { ...get, code: 'unavailable', beganAtMonotonicMs },
      ),
    failToWrite: (projectId: string, code: ControlApiErrorCode) =>
      reportWriteError({ outages }, { projectId, account: 'main' }, { code, route: 'PATCH endpoint', message: 'no' }),
    answer: (projectId: string, account = 'main') => outages.projectAnswers({ projectId, account }, 'read'),
    answerWrite: (projectId: string) => outages.projectAnswers({ projectId, account: 'main' }, 'write'),
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

  it('is listed with what is refused, since when, and the latest answer, until it is answered', () => {
    const { outages, time, fail, failToWrite, answer } = theOutages();
    fail('p-one', 'forbidden');
    time.ms += 1_000;
    fail('p-one', 'malformed');
    failToWrite('p-one', 'forbidden');
    const write = { projectId: 'p-one', kind: 'write', message: expect.stringContaining('PATCH'), sinceMs: 8_000 };
    expect(outages.refused()).toMatchObject([
      { projectId: 'p-one', kind: 'read', sinceMs: 7_000, lastMs: 8_000 },
      write,
    ]);
    answer('p-one');
    expect(outages.refused()).toMatchObject([write]);
  });

  it('is remembered with its end, if it was an outage of all', () => {
    const { outages, fail, answer } = theOutages();
    fail(undefined);
    expect(outages.ended().size).toBe(0);
    answer('p-one');
    expect([...outages.ended()]).toEqual([
      ['control API', { message: expect.stringContaining('500'), atMs: 7_000, atMonotonicMs: 7_000 }],
    ]);
  });

  it('is not named for readings that were not sent, since others fail', () => {
    const { outages, events } = theOutages();
    const error = { code: 'unavailable', route: 'GET endpoints', message: 'not sent', othersFail: true } as const;
    for (let round = 0; round < 3; round += 1) {
      reportApiError({ outages }, { projectId: 'p-one', account: 'main' }, error);
    }
    expect(events()).toEqual([]);
  });

  it('is named at its second failure, where nothing else is asked', () => {
    const { events, fail } = theOutages();
    fail('p-broken');
    expect(events()).toEqual([]);
    fail('p-broken');
    expect(events()).toEqual(['ebb.project_refused p-broken']);
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

describe('a state ends by the kind of request that has begun it', () => {
  it('that a project is refused to writes, though it can be read', () => {
    const { events, failToWrite, answer, answerWrite } = theOutages();
    for (let round = 0; round < 3; round += 1) {
      failToWrite('p-one', 'forbidden');
      answer('p-one');
    }
    expect(events()).toEqual(['ebb.project_refused p-one']);
    answerWrite('p-one');
    expect(events()).toEqual(['ebb.project_refused p-one', 'ebb.project_recovered p-one']);
  });

  it('that the control API answers no writes, though it answers all else', () => {
    const { outages, events, failToWrite, answer, answerWrite } = theOutages();
    for (let round = 0; round < 3; round += 1) {
      for (const projectId of ['p-one', 'p-two']) failToWrite(projectId, 'unavailable');
      for (const projectId of ['p-one', 'p-two', 'p-three']) answer(projectId);
      outages.up('control API');
    }
    expect(events()).toEqual(['ebb.outage control API']);
    answerWrite('p-one');
    expect(events()).toEqual(['ebb.outage control API', 'ebb.recovered control API']);
  });

  it.each(['a reading has failed since', 'no write has failed for five minutes'])(
    'but for an outage that a write has shown first, where %s',
    (why) => {
      const { outages, time, fail, failToWrite, answer } = theOutages();
      for (const projectId of ['p-one', 'p-two']) failToWrite(projectId, 'unavailable');
      if (why === 'a reading has failed since') fail('p-three');
      else time.ms += 300_000;
      answer('p-three');
      expect(outages.current().size).toBe(0);
    },
  );
});

describe('an outage for one account, while another is answered', () => {
  it('is one line, with none for its projects, and its end another', () => {
    const { events, fail, answer } = theOutages();
    answer('p-blue', 'blue');
    for (let round = 0; round < 3; round += 1) {
      for (const projectId of ['p-one', 'p-two', 'p-three']) {
        fail(projectId, 'unavailable', 'red');
        answer('p-blue', 'blue');
      }
    }
    expect(events()).toEqual(['ebb.outage control API for red']);
    for (const projectId of ['p-one', 'p-two', 'p-three']) answer(projectId, 'red');
    expect(events()).toEqual(['ebb.outage control API for red', 'ebb.recovered control API for red']);
  });

  it('is one of all once a project of another account fails, too', () => {
    const { outages, fail, answer } = theOutages();
    answer('p-blue', 'blue');
    fail('p-one', 'unavailable', 'red');
    fail('p-blue', 'unavailable', 'blue');
    expect([...outages.current().keys()]).toEqual(['control API']);
  });
});

describe('after an outage', () => {
  const PROJECTS = ['p-one', 'p-two', 'p-three', 'p-four'];

  it.each(['all accounts', 'one account'])('of %s, requests that began in it and fail late name nobody', (whose) => {
    const { events, time, fail, failSince, failToWriteSince, answer } = theOutages();
    const answerOthers = () => whose === 'one account' && answer('p-blue', 'blue');
    answerOthers();
    for (const projectId of PROJECTS) {
      fail(projectId);
      answerOthers();
    }
    const name = whose === 'one account' ? 'control API for main' : 'control API';
    time.ms += 300_000;
    answer('p-new');
    for (const projectId of PROJECTS) {
      failSince(projectId, time.ms - 1);
      failToWriteSince(projectId, time.ms - 1);
    }
    if (whose === 'all accounts') failSince(undefined, time.ms - 1);
    expect(events()).toEqual([`ebb.outage ${name}`, `ebb.recovered ${name}`]);
  });

  it('what failed in it does not count as failing: a project is named at its second failure since', () => {
    const { events, time, fail, failSince, answer } = theOutages();
    for (const projectId of PROJECTS) fail(projectId);
    time.ms += 1_000;
    answer('p-new');
    const before = events().length;
    failSince('p-one', time.ms + 1);
    expect(events()).toHaveLength(before);
    answer('p-two');
    failSince('p-one', time.ms + 2);
    expect(events().slice(before)).toEqual(['ebb.project_refused p-one']);
  });

  it('a project that failed alone before it still does not make another one', () => {
    const { outages, time, fail, answer } = theOutages();
    fail('p-broken');
    answer('p-one');
    for (const projectId of PROJECTS) fail(projectId);
    time.ms += 1_000;
    answer('p-new');
    fail('p-broken');
    fail('p-one');
    expect(outages.current().size).toBe(0);
  });
});

describe('an outage began when the first request began that failed in it', () => {
  it('also where requests are retried for half a minute, and later ones fail first', () => {
    const { outages, time, failSince, answer } = theOutages();
    answer('p-one');
    time.ms += 30_000;
    failSince('p-one', 9_000);
    failSince(undefined, 8_000);
    expect(outages.sinceMs('control API')).toBe(8_000);
    failSince('p-two', 7_500);
    expect(outages.sinceMs('control API')).toBe(7_500);
    time.ms += 300_000;
    answer('p-one');
    expect(outages.sinceMs('control API')).toBe(337_000);
    failSince(undefined, 337_000);
    expect(outages.sinceMs('control API')).toBe(337_000);
  });

  it('but not before the last answer, nor with a project that failed alone', () => {
    const { outages, time, failSince, answer } = theOutages();
    failSince('p-broken', 7_000);
    time.ms = 20_000;
    answer('p-one');
    failSince('p-broken', 21_000);
    for (const projectId of ['p-one', 'p-two']) failSince(projectId, 15_000);
    expect(outages.sinceMs('control API')).toBe(20_000);
  });

  it('also for one account, whose list of projects failed first', () => {
    const { outages, time, failSince, answer } = theOutages();
    const accounts = ['blue', 'red'].map((account) => ({ account }));
    const list = (beganAtMonotonicMs: number, isRedAway: boolean) => {
      const error = { code: 'unavailable', route: 'GET projects', message: '503', beganAtMonotonicMs } as const;
      const deps = { outages, api: { accountStatus: () => accounts } } as unknown as Parameters<
        typeof reportListing
      >[0];
      reportListing(deps, { projects: [{}], failures: new Map(isRedAway ? [['red', error]] : []) });
    };
    answer('p-blue', 'blue');
    list(7_000, true);
    expect(outages.sinceMs('project list of red')).toBe(7_000);
    time.ms = 20_000;
    list(19_000, false);
    list(21_000, true);
    for (const projectId of ['p-one', 'p-two']) {
      failSince(projectId, 22_000, 'red');
      answer('p-blue', 'blue');
    }
    expect(outages.sinceMs('control API for red')).toBe(21_000);
  });
});

it('a daemon that stops gives up its requests, which is no outage', () => {
  const { outages, log, fail, failToWrite } = theOutages();
  outages.end();
  for (const projectId of ['p-one', 'p-two', undefined]) fail(projectId, 'timeout');
  failToWrite('p-one', 'timeout');
  outages.down('Redis', 'the connection is closed');
  expect(log.lines).toEqual([]);
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

it('an account is concerned by outages of all and by its own, not by those of another account', () => {
  const concerning = ['Redis', 'control API', controlApiFor('main'), listOf('main')];
  expect(concerning.filter((name) => concernsAccount(name, 'main'))).toEqual(concerning);
  expect([controlApiFor('other'), listOf('other')].filter((name) => concernsAccount(name, 'main'))).toEqual([]);
});
