import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { baselineFile } from '../../src/cli/init/files.ts';
import { readBaselineFile } from '../../src/cli/restore.ts';
import { aCompute, aRecord, at, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');
const NOW_HAS = { minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 };
const ONCE_HAD = { minCu: 2, maxCu: 4, suspendTimeoutSeconds: -1 };
const ann = { who: 'ann', verified: true, requestId: 'asked-1' } as const;

/** What `ebb init` saved of three computes; one of them is gone. */
const FILE = baselineFile({
  ...{ apiUrl: 'http://127.0.0.1/api/v2', atMs: NOW },
  computes: ['ep-one', 'ep-two', 'ep-gone'].map((computeId) => aCompute({ computeId, ...ONCE_HAD })),
});

async function fileOf(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-baseline-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'baseline.json');
  await writeFile(path, text);
  return path;
}

/** A store that was lost: the baselines are what computes had under ebb. */
async function lostStore() {
  const store = createMemoryStore(createSteppedClock(NOW, () => false));
  const lease = await store.acquireLease('project-p-one', 'before', 1000);
  if (!lease) throw new Error('the lease is held');
  for (const computeId of ['ep-one', 'ep-two'])
    await store.putRecord('p-one', computeId, aRecord({ baseline: NOW_HAS, lastApplied: {} }), lease);
  await store.releaseLease(lease);
  const asked: string[] = [];
  const operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW },
    requestReconciles: async (projectIds: readonly string[]) => void asked.push(...projectIds),
  });
  return { store, operator, asked };
}

describe('a restore from a file', () => {
  it('brings back what the file has, also where ebb has changed nothing since, and leaves what is gone', async () => {
    const { store, operator, asked } = await lostStore();
    const baselines = await readBaselineFile(await fileOf(FILE), []);
    const computes = baselines.map(({ compute_id }) => compute_id);
    expect(computes).toEqual(['ep-one', 'ep-two', 'ep-gone']);
    const without = await operator.restore({ computes: ['ep-one'], owner: 'ann', now: false }, ann);
    expect(without).toMatchObject({ ok: true, value: { computes: [{ outcome: 'nothing_to_do' }] } });
    const restored = await operator.restore({ computes, baselines, owner: 'ann', now: false, confirm: 2 }, ann);
    expect(restored).toMatchObject({
      ok: true,
      value: {
        computes: ['ep-one', 'ep-two'].map((compute_id) => ({
          ...{ compute_id, outcome: 'requested' },
          baseline: { min_cu: 2, max_cu: 4, suspend_timeout_seconds: -1 },
        })),
      },
    });
    const records = await store.records('p-one');
    for (const id of ['ep-one', 'ep-two'])
      expect(records.get(id)).toMatchObject({ baseline: ONCE_HAD, restore: { owner: 'ann', askedAtMs: NOW } });
    expect(asked).toEqual(['p-one']);
    const { entries } = await store.audit({ sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: 9 });
    expect(entries.map(({ kind, who, reasons }) => [kind, who, reasons[0]?.message])).toEqual(
      Array(2).fill(['restore', 'ann', 'restore to the values of a file requested']),
    );
  });

  it('changes none but the computes that are asked for, which a token allows', async () => {
    const { store, operator } = await lostStore();
    const path = await fileOf(FILE);
    const baselines = await readBaselineFile(path, []);
    await operator.restore({ computes: ['ep-two'], baselines, owner: 'ann', now: false }, ann);
    expect((await store.records('p-one')).get('ep-one')).toMatchObject({ baseline: NOW_HAS });
    expect((await readBaselineFile(path, ['ep-two'])).map(({ compute_id }) => compute_id)).toEqual(['ep-two']);
  });

  it('refuses what no compute can have, and still names a compute that nobody knows', async () => {
    const { operator } = await lostStore();
    const baseline = { compute_id: 'ep-one', min_cu: 3.3, max_cu: 4, suspend_timeout_seconds: 300 };
    const restore = (computes: string[], fields = {}) =>
      operator.restore({ computes, baselines: [{ ...baseline, ...fields }], owner: 'ann', now: false }, ann);
    expect(await restore(['ep-one'])).toMatchObject({ error: { message: expect.stringMatching(/^ep-one: 3\.3 CU/) } });
    const seconds = { min_cu: 1, suspend_timeout_seconds: 5 };
    expect(await restore(['ep-one'], seconds)).toMatchObject({
      error: { message: expect.stringMatching(/^ep-one: a t/) },
    });
    expect(await restore(['ep-nobody'], { min_cu: 1 })).toMatchObject({ ok: false, error: { code: 'not_found' } });
  });

  it.each([
    ['{', [], /it is not a JSON object with computes; give a file that ebb init has written$/],
    ['[]', [], /it is not a JSON object with computes/],
    ['{"computes":[{"compute_id":"ep-one","min_cu":"2"}]}', [], /computes\.0\.min_cu: /],
    ['{"computes":[]}', [], /has no computes$/],
    [FILE, ['ep-other'], /has no compute ep-other$/],
  ])('says in one line what is wrong with the file: %#', async (text, named, message) => {
    await expect(readBaselineFile(await fileOf(text), named)).rejects.toThrow(message);
  });
});
