import { describe, expect, it } from 'vitest';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { openBudgets, readReleases } from '../../src/app/usage/budget-store.ts';
import { aHold, aRecord, at, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const FROM = at('2026-03-01T00:00:00Z');
const TO = at('2026-04-01T00:00:00Z');
const NOW = at('2026-03-20T12:00:00Z');
const ann = { who: 'ann', verified: true, requestId: 'asked-1' } as const;

/** An operator on a store that has a budget, whose step limits until an instant. */
async function withBudget(limitsUntilMs: number) {
  const store = createMemoryStore(createSteppedClock(NOW, () => false));
  const step = { at: 1, of: 'spent' } as const;
  await (await openBudgets(store)).replace([
    {
      ...{ policy: 'dev-budget', account: 'main', month: { unit: 'usd', amount: 400 }, fromMs: FROM, toMs: TO },
      ...{
        spent: 410,
        projected: null,
        unknownHours: 0,
        knownUntilMs: NOW,
        decidedAtMs: 0,
        notified: [],
        released: [],
      },
      spans: [{ policy: 'dev-budget', account: 'main', ...step, fromMs: FROM + 1, untilMs: limitsUntilMs }],
    },
  ]);
  const operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW, requestReconciles: async () => {} },
  });
  const ofGuard = await operator.release({ target: 'budget:dev-budget', owner: 'ann', guard: true }, ann);
  expect(ofGuard).toMatchObject({ ok: false, error: { code: 'invalid' } });
  const released = await operator.release({ target: 'budget:dev-budget', owner: 'ann' }, ann);
  const { entries } = await store.audit({ sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: 9 });
  return { released, entries, releases: (await readReleases(store)) ?? [] };
}

describe('a person who ends the limits of a budget', () => {
  it('leaves a line in the audit', async () => {
    const { released, entries, releases } = await withBudget(TO);
    expect(released).toMatchObject({ ok: true, value: { budgets: ['dev-budget'] } });
    expect(releases).toEqual([{ policy: 'dev-budget', who: 'ann', atMs: NOW }]);
    expect(entries).toMatchObject([
      {
        ...{ kind: 'hold', computeId: '', ...ann, atMs: NOW },
        reasons: [{ code: 'released', message: expect.stringContaining('budget dev-budget') }],
      },
    ]);
  });

  it('leaves none where nothing limits', async () => {
    expect(await withBudget(NOW - 1)).toMatchObject({ entries: [], releases: [] });
  });
});

it('ebb release --guard ends what guards have taken back, and nothing else', async () => {
  const store = createMemoryStore(createSteppedClock(NOW, () => false));
  const size = {
    ...{ guard: 'latency', sinceMs: NOW, policy: 'office-hours', terms: 'abc' },
    ...{ fields: { minCu: 1, maxCu: 4 }, lowered: { minCu: 1, maxCu: 1 } },
  };
  const reversals = { size: [NOW - 3, NOW - 2, NOW - 1] };
  const lease = await store.acquireLease('project-p-one', 'test', 1_000);
  if (!lease) throw new Error('no lease');
  await store.putRecord('p-one', 'ep-one', aRecord({ floors: { size }, reversals }), lease);
  await store.releaseLease(lease);
  const asked: string[] = [];
  const operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW },
    requestReconciles: async (ids) => void asked.push(...ids),
  });
  const release = (more: object) => operator.release({ target: 'ep-one', owner: 'ann', ...more }, ann);
  const record = async () => (await store.records('p-one')).get('ep-one');
  expect(await release({ guard: true })).toMatchObject({ ok: true, value: { computes: [{ compute_id: 'ep-one' }] } });
  expect([(await record())?.floors, (await record())?.reversals, asked]).toEqual([undefined, reversals, ['p-one']]);
  expect(await release({ guard: true })).toMatchObject({ value: { computes: [] } });
  const { entries } = await store.audit({ sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: 9 });
  expect(entries).toMatchObject([{ ...ann, computeId: 'ep-one', reasons: [{ code: 'released' }] }]);
  await store.putHold(aHold(), undefined as never);
  expect(await release({ guard: true, target: aHold().id })).toMatchObject({ ok: false, error: { code: 'invalid' } });
  expect(await store.holds(NOW)).toHaveLength(1);
  expect(await release({})).toMatchObject({ value: { computes: [{ compute_id: 'ep-one' }] } });
  expect((await record())?.reversals).toBeUndefined();
});

it('a hold that the store does not have may come back from a daemon, where none answers', async () => {
  const store = createMemoryStore(createSteppedClock(NOW, () => false));
  const operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW, requestReconciles: async () => {} },
  });
  expect(await operator.release({ target: 'h-1', owner: 'ann' }, ann)).toMatchObject({
    error: { code: 'not_found', message: expect.stringContaining('written back by a running daemon') },
  });
});
