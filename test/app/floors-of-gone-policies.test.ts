/** A floor stays in the store exactly as long as the policy that it keeps from lowering, and its guard, may still exist. */
import { expect, it } from 'vitest';
import { recordWanted } from '../../src/app/reconcile/records.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import { aCompute, aGuard, aRecord, aSchedule, at, compiled } from '../support/builders.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const LARGE = { minCu: 1, maxCu: 4 };
const guard = aGuard({ name: 'latency', remedy: 'undo' });
const evening = aSchedule({ name: 'office-hours', windows: [], otherwise: 'leave' });
const FLOOR = {
  ...{ guard: 'latency', sinceMs: NOW_MS - 60_000, fields: LARGE, lowered: { minCu: 0.25, maxCu: 1 } },
  ...{ policy: 'office-hours', terms: 'abc' },
};

/** What the store holds after a reconcile; `undefined` where nothing was written. */
async function storedAfter(
  policies: readonly Policy[],
  { hasGeneration = true, ok = true, floor = FLOOR, mode = 'enforce' as 'enforce' | 'observe' } = {},
) {
  const compute = aCompute({ state: 'active' });
  const record = aRecord({ floors: { size: floor, suspend_timeout: { ...floor, policy: 'nights' } } });
  const rules = compiled(...policies);
  const situation = { policies: rules, compute, record, nowMs: NOW_MS };
  const evaluated = { compute, record, ...evaluate({ ...situation, mode: 'enforce', projectBusy: false }) };
  const written: (typeof record)[] = [];
  const deps = {
    ...{
      mode,
      generation: () => (hasGeneration ? 7 : undefined),
      overrides: { holds: [] },
      mayWrite: async () => ({ ok }),
    },
    rules: { current: { policies: rules } },
    store: { putRecord: async (_project: string, _id: string, after: typeof record) => Boolean(written.push(after)) },
  };
  const [after] = await recordWanted(deps as never, { name: 'p', holder: 'd', token: 1 }, [evaluated]);
  return { kept: Object.keys(after?.record.floors ?? {}), stored: written.at(-1) };
}

const nights = aSchedule({ name: 'nights', windows: [], otherwise: 'leave' });
const ALL = ['size', 'suspend_timeout'];

it('is deleted with its policy, and with its guard', async () => {
  expect((await storedAfter([evening, nights, guard])).kept).toEqual(ALL);
  const one = await storedAfter([evening, guard]);
  expect([one.kept, Object.keys(one.stored?.floors ?? {})]).toEqual([['size'], ['size']]);
  const none = await storedAfter([evening, nights]);
  expect([none.kept, none.stored && 'floors' in none.stored]).toEqual([[], false]);
});

it('stays while its policy is edited, since it does not count then anyway', async () => {
  const edited = aSchedule({ ...evening, priority: 9 });
  expect((await storedAfter([edited, nights, guard])).kept).toEqual(ALL);
});

it('stays while the set is staged or being counted, superseded by a newer one, or only observed', async () => {
  expect((await storedAfter([guard], { hasGeneration: false })).kept).toEqual(ALL);
  expect((await storedAfter([guard], { ok: false })).kept).toEqual(ALL);
  expect((await storedAfter([guard], { mode: 'observe' })).kept).toEqual(ALL);
});

it("stays while the files of its team can't be read", async () => {
  const floor = { ...FLOOR, policy: 'shop/office-hours' };
  const { policies } = unloadedPart({ name: 'shop', projects: ['shop-*'] });
  expect((await storedAfter([...policies, guard], { floor })).kept).toEqual(['size']);
});
