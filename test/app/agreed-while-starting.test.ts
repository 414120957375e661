import { expect, it } from 'vitest';
import { recordWanted } from '../../src/app/reconcile/records.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import { aCompute, aRecord, aSchedule, at, compiled } from '../support/builders.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const SIZE = { minCu: 1, maxCu: 1 };
const WANTS_WHAT_IS_THERE = compiled(aSchedule({ windows: [], otherwise: { size: SIZE } }));

/** What is stored of a compute that a person has changed to what the rules of this daemon want. */
async function recorded(generation: number | undefined, policies = WANTS_WHAT_IS_THERE) {
  const mark = { fields: SIZE, seenAtMs: NOW_MS - 60_000, raises: false };
  const record = aRecord({ lastApplied: { minCu: 4, maxCu: 4 }, manual: { size: mark } });
  const compute = aCompute(SIZE);
  const situation = { policies, compute, record, nowMs: NOW_MS };
  const evaluated = {
    compute,
    record,
    ...evaluate({ ...situation, mode: 'enforce', projectBusy: false }),
  };
  const deps = {
    ...{ mode: 'enforce', generation: () => generation, overrides: { holds: [] } },
    rules: { current: { policies } },
    store: { putRecord: async () => true },
  };
  const [after] = await recordWanted(deps as never, { name: 'p', holder: 'd', token: 1 }, [evaluated]);
  return after?.record;
}

it('a daemon that has no generation yet does not take what a person has set for what policies want', async () => {
  expect((await recorded(undefined))?.manual?.size).toBeDefined();
  const agreed = await recorded(7);
  expect(agreed).not.toHaveProperty('manual');
  expect(agreed?.lastApplied).toMatchObject(SIZE);
});

it('nor does one that lacks the policies of its team, which may want something else', async () => {
  const { policies } = WANTS_WHAT_IS_THERE.set;
  const unloaded = unloadedPart({ name: 'web', projects: ['*'] }).policies;
  expect((await recorded(7, compiled(...policies, ...unloaded)))?.manual?.size).toBeDefined();
});
