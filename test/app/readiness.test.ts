import { describe, expect, it } from 'vitest';
import { checkReadiness, type ReadinessDeps } from '../../src/app/operator/readiness.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import { aSchedule, currentRules, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

/** A daemon that is well, on a store whose records can be broken and mended. */
function aDaemon() {
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const inStore = new Map<string, string>();
  const lastRead = new Map<string, string>();
  const outages = createOutages(telemetry, REAL.clock);
  const problems: { times?: string } = {};
  const context = {
    ...{ telemetry, outages, engineName: 'embedded', rules: currentRules(aSchedule()) },
    ...{ sets: createPolicySets({ stages: false, accepted: undefined }), mode: 'enforce' },
    queue: { counts: async () => ({}) },
    store: {
      storeId: async () => 'id',
      brokenRecords: async () => lastRead,
      async records(projectId: string) {
        for (const [id, project] of lastRead) if (project === projectId && !inStore.has(id)) lastRead.delete(id);
        return new Map();
      },
    },
    storedTimes: { problem: () => problems.times },
    storeClock: { lastExcessiveOffsetMs: () => undefined },
    api: { accountStatus: () => [] },
    fleet: {
      projectIds: () => ['p-one', 'p-two', 'p-three'],
      cachedProject: (id: string) => (id === 'p-three' ? undefined : { computes: [{ computeId: `ep-${id}` }] }),
      cachedProjects: () => [0, 1].map((minute) => ({ readAtMs: Date.UTC(2026, 2, 2, 7, minute) })),
      latestEvaluation: (id: string) => id === 'ep-p-one' || undefined,
    },
  } as unknown as ReadinessDeps;
  return {
    ...{ outages, problems, readiness: () => checkReadiness(context) },
    breakRecord(computeId: string, projectId: string) {
      for (const records of [inStore, lastRead]) records.set(computeId, projectId);
    },
    correctRecord: (computeId: string) => inStore.delete(computeId),
    async red() {
      const { ready, checks } = await checkReadiness(context);
      const missing = checks.filter(({ ok }) => !ok);
      expect(ready).toBe(missing.length === 0);
      return missing.map(({ name, message }) => `${name}: ${message}`);
    },
  };
}

it('a daemon is ready before it has read its whole fleet, and says how much of it, as its page does', async () => {
  const { ready, checks } = await aDaemon().readiness();
  expect([ready, checks.find(({ name }) => name === 'projects')]).toEqual([
    true,
    { name: 'projects', ok: true, message: '1 of 3 read' },
  ]);
});

describe('a daemon is not ready', () => {
  it('while its disk is full, though the store can be read; ready when it can be written to again', async () => {
    const { outages, red } = aDaemon();
    expect(await red()).toEqual([]);
    outages.down('embedded', 'the embedded queue in .ebb fails: No space left on device');
    expect(await red()).toEqual(['store: the embedded queue in .ebb fails: No space left on device']);
    outages.up('embedded');
    expect(await red()).toEqual([]);
  });

  it('while the control API is away, and says how old is what it shows of computes', async () => {
    const { outages, red } = aDaemon();
    outages.down('control API', 'GET /projects: 503');
    expect(await red()).toEqual(['control API: GET /projects: 503; computes are shown as of 2026-03-02T07:01:00Z']);
  });

  it('while a record cannot be read, and names its compute; ready when it can', async () => {
    const { breakRecord, correctRecord, red } = aDaemon();
    breakRecord('ep-one', 'p-one');
    breakRecord('ep-two', 'p-two');
    expect(await red()).toEqual([expect.stringMatching(/^records: the records of 2 .* not touched: ep-one, ep-two;/)]);
    correctRecord('ep-one');
    expect(await red()).toEqual([expect.stringMatching(/^records: .*: ep-two;/)]);
    correctRecord('ep-two');
    expect(await red()).toEqual([]);
  });

  it('while what is stored is ahead of its clock; ready when that is over', async () => {
    const { problems, red } = aDaemon();
    problems.times = 'a stored time of ep-one is 60 min ahead';
    expect(await red()).toEqual(['stored times: a stored time of ep-one is 60 min ahead']);
    delete problems.times;
    expect(await red()).toEqual([]);
  });
});
