import { describe, expect, it } from 'vitest';
import { confirmWrite } from '../../src/domain/records/failures.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const intent = { fields: { minCu: 1, maxCu: 4 }, atMs: 1000 };

describe('settleIntent', () => {
  it('takes a change that is there for applied', () => {
    const settled = confirmWrite(aRecord({ intent }), aCompute({ minCu: 1, maxCu: 4 }), 1001);
    expect(settled.intent).toBeUndefined();
    expect(settled.lastApplied).toMatchObject({ minCu: 1, maxCu: 4 });
  });

  it('keeps a change that may still arrive, and forgets one that no longer can', () => {
    expect(confirmWrite(aRecord({ intent }), aCompute(), 20_999).intent).toEqual(intent);
    const lost = confirmWrite(aRecord({ intent }), aCompute(), 21_000);
    expect(lost.intent).toBeUndefined();
    expect(lost.failures).toEqual({
      size: { count: 1, desired: intent.fields, lastAtMs: 1000, message: 'no clear answer came' },
    });
  });

  it('counts a change as lost only by a reading that began once it can no longer arrive', () => {
    expect(confirmWrite(aRecord({ intent }), aCompute(), 30_000, 20_999).intent).toEqual(intent);
    expect(confirmWrite(aRecord({ intent }), aCompute(), 30_000, 21_000).intent).toBeUndefined();
  });

  it('takes a restart for done once the compute has started since', () => {
    const restarting = aRecord({ intent: { restart: true, atMs: 1000 } });
    const settled = (startedAtMs: number | undefined, nowMs = 1001) =>
      confirmWrite(restarting, aCompute(startedAtMs === undefined ? {} : { startedAtMs }), nowMs);
    expect([999, undefined].map((startedAtMs) => settled(startedAtMs))).toEqual([restarting, restarting]);
    expect(settled(1000)).toEqual(aRecord());
    expect(settled(999, 21_000).failures?.restart?.count).toBe(1);
    const resizing = aRecord({ intent });
    expect(confirmWrite(resizing, aCompute({ startedAtMs: 2000 }), 1001)).toBe(resizing);
  });
});
