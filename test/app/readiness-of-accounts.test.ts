import { describe, expect, it } from 'vitest';
import { type GaugeDeps, updateGauges } from '../../src/app/operator/fleet-metrics.ts';
import { checkReadiness, type ReadinessDeps } from '../../src/app/operator/readiness.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { createOutages, type ReportListingDeps, reportListing } from '../../src/app/telemetry/outages.ts';
import type { AccountStatus, ControlApiError } from '../../src/ports/control-api.ts';
import { aSchedule, currentRules, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

/** A daemon of two accounts that are fine until a test says otherwise, and what its readiness says of them. */
function aDaemon() {
  const status: AccountStatus[] = [
    { account: 'main', key: 'valid' },
    { account: 'other', key: 'valid' },
  ];
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const context = {
    ...{ mode: 'observe', telemetry, outages: createOutages(telemetry, REAL.clock), rules: currentRules(aSchedule()) },
    sets: createPolicySets({ stages: true, accepted: undefined }),
    storeClock: { lastExcessiveOffsetMs: () => undefined },
    queue: { counts: async () => ({}) },
    storedTimes: { problem: () => undefined },
    store: { storeId: async () => 'store', brokenRecords: async () => new Map() },
    api: { accountStatus: () => status },
    fleet: { projectIds: () => [], cachedProject: () => undefined },
  } as unknown as ReadinessDeps & ReportListingDeps;
  const list = (failure?: ControlApiError) =>
    reportListing(context, { projects: [{}], failures: new Map(failure && [['main', failure]]) });
  return { status, list, ready: () => checkReadiness(context) };
}

it('a gauge says for how long nothing could be sent', async () => {
  const { status } = aDaemon();
  status.splice(0, 1, { account: 'main', key: 'valid', stalledMs: 90_000 });
  const set = new Map<string, number>();
  const metrics = {
    ...{ increment() {}, observe() {}, clear() {} },
    set: (name: string, labels: object, value: number) => void set.set(`${name} ${JSON.stringify(labels)}`, value),
  };
  await updateGauges({
    ...{ mode: 'observe', clock: { now: () => 0 }, leaderLease: { isHeld: () => false } },
    ...{ api: { accountStatus: () => status }, queue: { counts: async () => Promise.reject(new Error('away')) } },
    store: { holds: async () => [], freezes: async () => [] },
    rules: currentRules(aSchedule()),
    telemetry: { log: memoryLog(), metrics },
  } as unknown as GaugeDeps);
  expect(set.get('ebb_api_stalled_seconds {"account":"main"}')).toBe(90);
  expect(set.get('ebb_api_stalled_seconds {"account":"other"}')).toBe(0);
});

describe('readiness', () => {
  it('is red once nothing could be sent for a minute, names the account, and is green again once it is answered', async () => {
    const { status, ready } = aDaemon();
    const set = (stalledMs: number) => status.splice(0, 1, { account: 'main', key: 'valid', stalledMs });
    set(59_000);
    expect((await ready()).ready).toBe(true);
    set(90_000);
    const red = await ready();
    expect(red.ready).toBe(false);
    expect(red.checks.filter(({ ok }) => !ok)).toEqual([
      { name: 'account main', ok: false, message: expect.stringContaining('nothing could be sent for 90 s') },
    ]);
    set(0);
    expect((await ready()).ready).toBe(true);
  });

  it('is red while the list of projects has no end, says which, and is green again once it has one', async () => {
    const { list, ready } = aDaemon();
    list({ code: 'malformed', route: 'GET /projects', message: 'the list has no end', account: 'main' });
    const red = await ready();
    expect(red.ready).toBe(false);
    expect(red.checks.filter(({ ok }) => !ok)).toEqual([
      { name: 'account main', ok: false, message: 'GET /projects: malformed: the list has no end' },
    ]);
    list();
    expect((await ready()).ready).toBe(true);
  });
});
