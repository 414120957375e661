import { describe, expect, it } from 'vitest';
import { settleIntent } from '../../src/domain/records.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const intent = { fields: { minCu: 1, maxCu: 4 }, atMs: 1000 };

describe('settleIntent', () => {
  it('takes a change that is there for applied', () => {
    const settled = settleIntent(aRecord({ intent }), aCompute({ minCu: 1, maxCu: 4 }), 1001);
    expect(settled.intent).toBeUndefined();
    expect(settled.lastApplied).toMatchObject({ minCu: 1, maxCu: 4 });
  });

  it('keeps a change that may still arrive, and forgets one that no longer can', () => {
    expect(settleIntent(aRecord({ intent }), aCompute(), 30_999).intent).toEqual(intent);
    const lost = settleIntent(aRecord({ intent }), aCompute(), 31_000);
    expect(lost.intent).toBeUndefined();
    expect(lost.failures).toMatchObject({ size: { count: 1, desired: intent.fields } });
  });
});
