import { expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createDueWrites } from '../../src/app/apply/due-writes.ts';
import { type LockedProject, withProjectLease } from '../../src/app/leases/locked-project.ts';
import { readingsValidFromMs } from '../../src/app/reconcile/missing.ts';
import { type ReconcileDeps, reconcile } from '../../src/app/reconcile/reconcile.ts';
import { knownRecord } from '../../src/app/reconcile/records.ts';
import { describeChain } from '../../src/common/errors.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord, MAY_DECIDE } from '../support/builders.ts';

const NOW_MS = 10_000;
const sentAt = (lastSentAtMs: number): ComputeRecord => ({ ...aRecord(), lastSentAtMs });

/** What a daemon has concluded itself about `ep-a`, beside what the store has of it. */
function aProject({ own, stored }: { own?: ComputeRecord; stored?: ComputeRecord }) {
  const compute = aCompute({ computeId: 'ep-a' });
  const evaluatedCompute = own && { compute, record: own };
  const deps = {
    clock: { now: () => NOW_MS },
    fleet: {
      ownEvaluation: () => evaluatedCompute,
      ownEvaluations: () => (evaluatedCompute ? [evaluatedCompute] : []),
    },
  } as unknown as Parameters<typeof readingsValidFromMs>[0] & Parameters<typeof knownRecord>[0];
  const locked = { records: new Map(stored ? [['ep-a', stored]] : []) } as unknown as LockedProject;
  return { notBefore: readingsValidFromMs(deps, locked, 'a'), known: knownRecord(deps, locked.records, 'ep-a') };
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

it('goes by the store where its own last change is in the future: its clock was ahead then', () => {
  const ahead = NOW_MS + 90_000;
  expect(aProject({ own: sentAt(ahead), stored: sentAt(5_000) }).known).toEqual(sentAt(5_000));
  expect(aProject({ own: sentAt(ahead) }).known).toEqual(sentAt(ahead));
});

it('gives its turn among the writes that are due back where a lock throws', async () => {
  const dueWrites = createDueWrites(systemClock());
  const down = async () => Promise.reject(new Error('the store is down'));
  const deps = { ...MAY_DECIDE, clock: { monotonicMs: () => 0 }, store: { acquireLease: down }, holder: 'me' };
  const { signal } = new AbortController();
  const permits = { updateCompute: { giveBack: () => {} } };
  for (let index = 0; index < 65; index += 1) {
    const occasion = { signal, boundaryMs: 0, dueWrites, permits } as never;
    await expect(reconcile(deps as unknown as ReconcileDeps, 'p', occasion)).rejects.toThrow('locking it');
  }
  const turn = await dueWrites.begin();
  turn.end();
});

it('says why its work failed, not that the lease could not be given back after that', async () => {
  const lease = { name: 'project-p', holder: 'me', token: 1 };
  const store = {
    acquireLease: async () => lease,
    releaseLease: () => Promise.reject(new Error('the store is down')),
    records: () => Promise.reject(new Error('its records are broken')),
  } as unknown as ReconcileDeps['store'];
  const clock = { monotonicMs: () => 0 };
  const failing = () => Promise.reject(new Error('the work failed'));
  await expect(withProjectLease({ store, holder: 'me' }, 'p', failing)).rejects.toThrow('the work failed');
  const passing = async () => 1;
  await expect(withProjectLease({ store, holder: 'me' }, 'p', passing)).rejects.toThrow('the store is down');
  const deps = { ...MAY_DECIDE, clock, store, holder: 'me' } as unknown as ReconcileDeps;
  const reconciling = reconcile(deps, 'p', { signal: new AbortController().signal, boundaryMs: 0 });
  await expect(reconciling.catch(describeChain)).resolves.toBe('locking it: its records are broken');
});
