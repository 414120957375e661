import { expect, it } from 'vitest';
import { isSettled } from '../../src/app/evaluate-project/evaluate.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { aCompute, aRecord, aSchedule, at, compiled } from '../support/builders.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const SIZE = { minCu: 1, maxCu: 1 };
const policies = compiled(aSchedule({ windows: [], otherwise: { size: SIZE } }));

it('a compute that is as wanted needs a reconcile until it is recorded that enforcing has found it so', () => {
  const of = (mode: 'enforce' | 'observe', known: Parameters<typeof aRecord>[0], size = SIZE) => {
    const compute = aCompute(size);
    const record = aRecord({
      setBy: { size: 'office-hours' },
      enforcedSinceMs: undefined as never,
      lastApplied: {},
      ...known,
    });
    const situation = { policies, compute, record, nowMs: NOW_MS, mode, projectBusy: false };
    return isSettled(mode, { compute, record, ...evaluate(situation) });
  };
  const enforced = { enforcedSinceMs: NOW_MS - 3_600_000 };
  expect(of('observe', {})).toBe(true);
  expect(of('enforce', {})).toBe(false);
  // Without it a person's next change would look like what was always there.
  expect(of('enforce', enforced)).toBe(false);
  expect(of('enforce', { ...enforced, lastApplied: SIZE })).toBe(true);
  expect(of('enforce', { ...enforced, lastApplied: SIZE }, { minCu: 2, maxCu: 2 })).toBe(false);
});
