import { describe, expect, it } from 'vitest';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { openBudgets, readReleases } from '../../src/app/usage/budget-store.ts';
import { at, REAL } from '../support/builders.ts';
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
  const released = await operator.release({ target: 'budget:dev-budget', owner: 'ann' }, ann);
  const { entries } = await store.audit({ sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: 9 });
  return { released, entries, releases: await readReleases(store) };
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
