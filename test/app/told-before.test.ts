import { expect, it } from 'vitest';
import { type ToldBeforeDeps, untoldOf } from '../../src/app/apply/told-before.ts';
import { digestKey, SENT_DIGESTS } from '../../src/app/notifications/sent-digests.ts';
import type { Outages } from '../../src/app/telemetry/outages.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { Action } from '../../src/domain/plan/plan.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { AccountStatus, ControlApi } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, at, currentRules } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const MINUTE_MS = 60_000;
const EIGHT = at('2026-03-02T08:00:00Z');
const compute = aCompute({ computeId: 'ep-1' });
const action = { kind: 'update', fields: { minCu: 1, maxCu: 2 }, disconnects: true, policy: 'office-hours' } as Action;

async function untold({
  nowMs = EIGHT + 6 * MINUTE_MS,
  record = aRecord(),
  ...more
}: { nowMs?: number; record?: ComputeRecord } & Partial<ToldBeforeDeps> = {}) {
  const rules = currentRules(aSchedule());
  const url = { from: 'text', text: 'http://127.0.0.1/' } as const;
  const receiver: Receiver = { ...{ name: 'ops', to: 'webhook', allowedOrigins: [], file: 'ebb.yaml' }, url };
  rules.current.notify = { receivers: [receiver], beforeMs: 15 * MINUTE_MS };
  const store = createMemoryStore(createSteppedClock(0, () => false));
  const digest = {
    computeIds: ['ep-1', 'ep-2'],
    restartIds: ['ep-1', 'ep-2'],
    toMs: EIGHT,
    untilMs: EIGHT + 3_600_000,
  };
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-web', EIGHT), digest);
  const deps = {
    ...{ rules, store, clock: { now: () => nowMs }, startedAtMs: 0 },
    api: { accountStatus: () => [] },
    ...{ slots: { wasReachedSince: () => false }, outages: { ended: () => new Map() }, ...more },
  };
  return untoldOf(deps as unknown as ToldBeforeDeps, { compute, record }, action, 'boundary');
}

const late = { owner: 'team-web', announcedAtMs: EIGHT, restarts: 2 };

it('an announced restart is late after two minutes, unless a limit has spread the restarts', async () => {
  expect(await untold({ nowMs: EIGHT + 2 * MINUTE_MS })).toEqual({});
  expect(await untold()).toEqual({ late });
  expect(await untold({ slots: { wasReachedSince: (_policy, sinceMs) => sinceMs === EIGHT } })).toEqual({});
});

it('it says what was in the way since the announced instant, as far as it is known', async () => {
  const ended = (atMs: number) =>
    ({ ended: () => new Map([['control API', { message: '503', atMs }]]) }) as unknown as Outages;
  const failure = { count: 1, desired: {}, message: '500: no', lastAtMs: EIGHT + MINUTE_MS };
  const why = async (given: Parameters<typeof untold>[0]) => (await untold(given)).late?.why;
  expect(await why({ startedAtMs: EIGHT + 5 * MINUTE_MS })).toBe('the daemon was started at 2026-03-02T08:05:00Z');
  expect(await why({ outages: ended(EIGHT + MINUTE_MS) })).toBe(
    'control API was not available until 2026-03-02T08:01:00Z: 503',
  );
  expect(await why({ outages: ended(EIGHT - MINUTE_MS) })).toBeUndefined();
  expect(await why({ record: aRecord({ failures: { size: failure } }) })).toBe('it had failed: 500: no');
  const accounts: AccountStatus[] = [
    { account: compute.account, key: 'valid', limit: { level: 4, agoMs: 0, normalInMs: 1 } },
  ];
  expect(await why({ api: { accountStatus: () => accounts } as unknown as ControlApi })).toBe(
    'less of the rate limit is used after answers 429: requests are spread evenly, at 1/4 of the rate',
  );
  expect(await why({ caller: { who: 'ann', requestId: 'r' } })).toBe('a person has applied it');
});
