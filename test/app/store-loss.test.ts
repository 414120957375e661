import { expect, it } from 'vitest';
import { createStoreWatch, type StoreWatchDeps } from '../../src/app/group/store-loss.ts';
import { SENT_DIGESTS, type SentDigests } from '../../src/app/notifications/sent-digests.ts';
import { refreshLeaderDecisions } from '../../src/app/rollout/reload.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { readReadyWaves } from '../../src/app/stored-waves.ts';
import { addRelease, openBudgets, readBudgets, readReleases } from '../../src/app/usage/budget-store.ts';
import { readTrialStops } from '../../src/app/usage/trial-stops.ts';
import type { ReadyWaves } from '../../src/domain/policy/waves.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { BudgetState } from '../../src/domain/spend/state.ts';
import type { TrialStop } from '../../src/domain/trial/savings.ts';
import { aBudget, aCompute, aRecord, currentRules } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryLog } from '../support/memory-log.ts';

/** A group whose store loses its data; each daemon remembers a record of the same compute. */
function aGroup() {
  const stored = new Map<string, ComputeRecord>();
  const ids = { store: 'before' };
  const time = { ms: 0 };
  const documents = memoryDocumentStore();
  /** What daemons know of the compute, where that is not what they started with. */
  const known: { record?: ComputeRecord } = {};
  const decisions = { readyWaves: [] as ReadyWaves[], trialStops: [] as TrialStop[] };
  const ofDecisions = { current: { policies: decisions } };
  const daemon = (record: ComputeRecord, digests: SentDigests = new Map(), rules: object = ofDecisions) => {
    const deps = {
      knownDigests: { current: digests },
      store: {
        ...documents,
        storeId: async () => ids.store,
        records: async () => new Map(stored),
        putRecord: async (_: string, computeId: string, after: ComputeRecord) => void stored.set(computeId, after),
        acquireLease: async () => ({}),
        releaseLease: async () => {},
      },
      ...{
        clock: { now: () => 0, monotonicMs: () => time.ms },
        telemetry: { log: memoryLog(), metrics: { increment() {} } },
      },
      fleet: { evaluatedComputes: () => [{ compute: aCompute({ computeId: 'ep' }), record: known.record ?? record }] },
      rules,
      ...{ overrides: { refresh: async () => {} }, newestGeneration: () => undefined, ensureTriggers: async () => {} },
    };
    return createStoreWatch(deps as unknown as StoreWatchDeps);
  };
  const lose = () => {
    stored.clear();
    ids.store += ' lost';
  };
  return { stored, documents, decisions, daemon, lose, time, known };
}

const OLDER = aRecord({ firstSeenAtMs: 1_000, lastSentAtMs: 2_000, lastApplied: { minCu: 1, maxCu: 2 } });
const NEWER = { ...OLDER, lastSentAtMs: 3_000, lastApplied: { minCu: 2, maxCu: 4 } };

it.each([
  ['first', [NEWER, OLDER]],
  ['last', [OLDER, NEWER]],
])('after a loss the record with the last write stays, though its daemon writes it back %s', async (_, known) => {
  const { stored, daemon, lose } = aGroup();
  const watches = known.map((record) => daemon(record));
  for (const watch of watches) await watch.check();
  lose();
  for (const watch of watches) await watch.check();
  expect(stored.get('ep')).toEqual(NEWER);
});

it('what became of a change that was being sent during the loss is written back, too', async () => {
  const { stored, daemon, lose, known, time } = aGroup();
  const watch = daemon(OLDER);
  await watch.check();
  lose();
  await watch.check();
  expect(stored.get('ep')).toEqual(OLDER);
  known.record = NEWER;
  time.ms += 2_000;
  await watch.check();
  expect(stored.get('ep')).toEqual(NEWER);
});

it('a record that was made after the loss keeps what was done since, and gets the baseline from before', async () => {
  const { stored, daemon, lose } = aGroup();
  const watch = daemon(OLDER);
  await watch.check();
  lose();
  const baseline = { minCu: 9, maxCu: 9, suspendTimeoutSeconds: 60 };
  stored.set('ep', { ...aRecord({ firstSeenAtMs: 4_000, lastSentAtMs: 5_000, baseline }) });
  await watch.check();
  expect(stored.get('ep')).toMatchObject({ firstSeenAtMs: 1_000, lastSentAtMs: 5_000, baseline: OLDER.baseline });
});

it('what was announced is stored again, unless another leader has announced it since or it is over', async () => {
  const { documents, daemon, lose } = aGroup();
  const [known, since] = [['ep-1'], ['ep-1', 'ep-2']].map((computeIds) => ({ computeIds, untilMs: 0 }));
  if (!known || !since) throw new Error('two digests');
  const watch = daemon(
    OLDER,
    new Map([
      ['both', known],
      ['own', known],
      ['over', { ...known, untilMs: -1 }],
    ]),
  );
  await watch.check();
  lose();
  await SENT_DIGESTS.put(documents, 'both', since);
  await watch.check();
  expect(await SENT_DIGESTS.all(documents)).toEqual(
    new Map([
      ['both', since],
      ['own', known],
    ]),
  );
});

it('the waves and ended trials that are known are stored again, beside what another leader has decided since', async () => {
  const { documents, decisions, daemon, lose } = aGroup();
  decisions.readyWaves.push({ account: 'a', opensAtMs: 9_000, setHash: 'h', waves: [] });
  decisions.trialStops.push({ policy: 'trial', atMs: 1, why: 'w' } as never);
  const watch = daemon(OLDER);
  await watch.check();
  lose();
  await watch.check();
  expect(await readReadyWaves(documents)).toEqual(decisions.readyWaves);
  expect(await readTrialStops(documents)).toEqual(decisions.trialStops);
  const [known, later] = [9_000, 18_000].map((opensAtMs) => ({ account: 'a', opensAtMs, setHash: 'h', waves: [] }));
  decisions.readyWaves.splice(
    0,
    1,
    { account: 'a', opensAtMs: 9_000, setHash: 'older', waves: [] },
    later as ReadyWaves,
  );
  decisions.trialStops.push({ policy: 'trial', terms: 'other' } as never);
  lose();
  await watch.check();
  expect(await readReadyWaves(documents)).toEqual([later, known]);
  expect(await readTrialStops(documents)).toEqual(decisions.trialStops);
});

const AT_95: BudgetState = {
  ...{ policy: 'budget', account: 'a', fromMs: 0, toMs: 90_000, month: { unit: 'cu_hours', amount: 100 } },
  ...{ spent: 96, projected: null, unknownHours: 0, knownUntilMs: 5_000, decidedAtMs: 4_000, notified: [] },
  ...{
    released: [],
    spans: [{ policy: 'budget', account: 'a', at: 0.95, of: 'spent', fromMs: 4_000, untilMs: 90_000 }],
  },
};
const BEFORE: BudgetState = { ...AT_95, spent: 90, knownUntilMs: 1_000, spans: [] };
const RELEASE = { policy: 'budget', who: 'ann', atMs: 6_000 };

/** Daemons that have last read these budgets, each from the store as it was then. */
async function whoKnow(all: readonly (readonly BudgetState[])[]) {
  const { documents, daemon, lose } = aGroup();
  const sets = createPolicySets({ stages: false, accepted: undefined });
  const watches: ReturnType<typeof daemon>[] = [];
  for (const states of all) {
    const rules = currentRules(aBudget());
    await (await openBudgets(documents)).replace(states);
    await addRelease(documents, RELEASE);
    await refreshLeaderDecisions({ rules, sets, store: documents });
    watches.push(daemon(OLDER, new Map(), rules));
  }
  for (const watch of watches) await watch.check();
  lose();
  for (const collection of ['budgets', 'budget-releases']) await documents.deleteDocuments(collection, ['all']);
  return { documents, watches };
}

it.each([
  ['by one daemon', [[AT_95]]],
  ['though a daemon with an older reading does so first', [[BEFORE], [AT_95]]],
  ['though a daemon with an older reading does so last', [[AT_95], [BEFORE]]],
])('the steps of budgets and their releases are stored again, %s', async (_, known) => {
  const { documents, watches } = await whoKnow(known);
  for (const watch of watches) await watch.check();
  expect(await readBudgets(documents)).toEqual([AT_95]);
  expect(await readReleases(documents)).toEqual([RELEASE]);
});

it('a fleet without budgets stores that no step limits, and overwrites nothing of other daemons', async () => {
  const { documents, daemon, lose } = aGroup();
  const watch = daemon(OLDER, new Map(), currentRules());
  await watch.check();
  lose();
  await watch.check();
  expect(await readBudgets(documents)).toEqual([]);
  await (await openBudgets(documents)).replace([AT_95]);
  lose();
  await watch.check();
  expect(await readBudgets(documents)).toEqual([AT_95]);
});

it('writing back ends if others never stop writing, and begins again with the next check', async () => {
  const { documents, daemon, lose } = aGroup();
  const { replaceDocument } = documents;
  let othersWrite = true;
  documents.replaceDocument = async (...change) => !othersWrite && replaceDocument(...change);
  const watch = daemon(OLDER, new Map(), currentRules());
  await watch.check();
  lose();
  await expect(watch.check()).rejects.toThrow('could not be written back');
  othersWrite = false;
  await watch.check();
  expect(await readBudgets(documents)).toEqual([]);
});

it('the steps of budgets are stored again though several daemons do so at the same time', async () => {
  const { documents, watches } = await whoKnow([[BEFORE], [AT_95], [{ ...AT_95, account: 'b' }]]);
  await Promise.all(watches.map((watch) => watch.check()));
  expect(await readBudgets(documents)).toHaveLength(2);
  expect(await readBudgets(documents)).toContainEqual(AT_95);
});

it('what only the leader remembers is asked of it once for each loss', async () => {
  const { daemon, lose } = aGroup();
  const watch = daemon(OLDER);
  let asked = 0;
  watch.onLoss(async () => {
    asked += 1;
  });
  await watch.check();
  lose();
  await watch.check();
  await watch.check();
  expect(asked).toBe(1);
});

it('what could not be written back is written back with the next check, and the records are those from before the loss', async () => {
  const { daemon, lose, stored, known } = aGroup();
  const watch = daemon(OLDER);
  let asked = 0;
  watch.onLoss(async () => {
    asked += 1;
    if (asked === 1) throw new Error('the store is away');
  });
  await watch.check();
  lose();
  await expect(watch.check()).rejects.toThrow('the store is away');
  // The compute has been decided by the empty store since.
  known.record = aRecord({ firstSeenAtMs: 9_000 });
  await watch.check();
  expect(asked).toBe(2);
  expect(stored.get('ep')).toEqual(OLDER);
});

it('after a loss nothing is decided until other daemons have written back what they know', async () => {
  const { daemon, lose, time } = aGroup();
  const watch = daemon(OLDER);
  await watch.check();
  expect(watch.waitMs()).toBe(0);
  lose();
  await watch.check();
  expect(watch.waitMs()).toBe(15_000);
  time.ms += 14_000;
  await watch.check();
  expect(watch.waitMs()).toBe(1_000);
  time.ms += 1_000;
  expect(watch.waitMs()).toBe(0);
});
