import { expect, it } from 'vitest';
import { knownRecord, notBelievedBefore } from '../../src/app/fleet/known-records.ts';
import type { LockedProject } from '../../src/app/leases/locked-project.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const NOW_MS = 10_000;
const sentAt = (lastSentAtMs: number): ComputeRecord => ({ ...aRecord(), lastSentAtMs });

/** What a daemon has concluded itself about `ep-a`, beside what the store has of it. */
function aProject({ own, stored }: { own?: ComputeRecord; stored?: ComputeRecord }) {
  const compute = aCompute({ computeId: 'ep-a' });
  const evaluatedCompute = own && { compute, record: own };
  const deps = {
    clock: { now: () => NOW_MS },
    fleet: {
      evaluatedCompute: () => evaluatedCompute,
      evaluatedOf: () => (evaluatedCompute ? [evaluatedCompute] : []),
    },
  } as unknown as Parameters<typeof notBelievedBefore>[0] & Parameters<typeof knownRecord>[0];
  const locked = { records: new Map(stored ? [['ep-a', stored]] : []) } as unknown as LockedProject;
  return { notBefore: notBelievedBefore(deps, locked, 'a'), known: knownRecord(deps, locked.records, 'ep-a') };
}

it('believes a picture that was read after the last change, if this daemon made it', () => {
  expect(aProject({ own: sentAt(5_000), stored: sentAt(5_000) }).notBefore).toBe(5_000);
  expect(aProject({ own: aRecord(), stored: aRecord() }).notBefore).toBe(0);
});

it('believes no picture from before now where another daemon made the last change, or the store has lost who did', () => {
  expect(aProject({ own: sentAt(4_000), stored: sentAt(5_000) }).notBefore).toBe(NOW_MS);
  expect(aProject({ stored: sentAt(5_000) }).notBefore).toBe(NOW_MS);
  expect(aProject({ own: sentAt(5_000) }).notBefore).toBe(NOW_MS);
  expect(aProject({ own: sentAt(5_000), stored: sentAt(4_000) }).notBefore).toBe(NOW_MS);
});

it('goes by its own record where the store has none, or one from before its last change', () => {
  expect(aProject({ own: sentAt(5_000) }).known).toEqual(sentAt(5_000));
  expect(aProject({ own: sentAt(5_000), stored: sentAt(4_000) }).known).toEqual(sentAt(5_000));
  expect(aProject({ own: sentAt(4_000), stored: sentAt(5_000) }).known).toEqual(sentAt(5_000));
  expect(aProject({}).known).toBeUndefined();
});
