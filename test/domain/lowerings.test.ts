import { expect, it } from 'vitest';
import { withAgreed } from '../../src/domain/plan/manual-changes.ts';
import { withLastChange } from '../../src/domain/records/lag.ts';
import { loweringOf } from '../../src/domain/records/lowerings.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const SMALL = { minCu: 0.25, maxCu: 1 };
const LARGE = { minCu: 2, maxCu: 2 };
const SMALLEST = { minCu: 0.25, maxCu: 0.25 };

it('a value of a person that policies want makes no lowering of the raise before it', () => {
  const raised = withLastChange(aRecord({ lastApplied: LARGE }), LARGE, { before: SMALL, answeredAtMs: 5 });
  expect(loweringOf(raised, 0)).toBeUndefined();
  const decision = { enforced: { size: SMALLEST }, enforcedDeciders: {}, freezes: [] };
  const agreed = withAgreed(raised, aCompute(SMALLEST), decision as never);
  expect(agreed.lastApplied).toMatchObject(SMALLEST);
  expect(loweringOf(agreed, 0)).toBeUndefined();
});

it('a lowering of ebb is one, also in a record that an older version has stored', () => {
  const lowered = withLastChange(aRecord({ lastApplied: SMALLEST }), SMALLEST, { before: LARGE, answeredAtMs: 5 });
  const { to: _to, ...older } = lowered.lastChanges?.size ?? { before: {}, answeredAtMs: 0 };
  for (const record of [lowered, { ...lowered, lastChanges: { size: older } }])
    expect(loweringOf(record, 0)).toMatchObject({ atMs: 5, changes: [{ from: LARGE, to: SMALLEST }] });
});
