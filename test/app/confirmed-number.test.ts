/** What changes several computes says how many they are, and changes them only for those who have agreed to that number. */
import { describe, expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import type { DaemonView } from '../../src/app/operator/parts.ts';
import { REPORTS } from '../../src/app/rollout/reload.ts';
import { openBudgets } from '../../src/app/usage/budget-store.ts';
import { askAndSend } from '../../src/cli/restore.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import { aCompute, aHold, aRecord, aSchedule, at, compiled, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');
const CHANGED = { minCu: 2, maxCu: 4, suspendTimeoutSeconds: 600 };
const NONE = compiled();
const SIZED = compiled(aSchedule({ name: 'night', windows: [], otherwise: { size: { minCu: 2, maxCu: 4 } } }));
const HASH = 'ab'.repeat(32);
const REPORT = {
  ...{ host: 'one:1', version: '1.2.3', mode: 'enforce' as const, leader: true, last_seen: isoInstant(NOW) },
  ...{ set_hash: HASH, staged: [], waiting: [], unmet_headroom: [] },
};

interface Given {
  /** Of the daemon that is asked; without one only the store is. */
  daemon?: { policies: typeof NONE; holds?: Hold[]; freezes?: Freeze[] };
  records?: Record<string, Parameters<typeof aRecord>[0]>;
}

async function aGroup({ daemon, records = {} }: Given = {}) {
  const clock = createSteppedClock(NOW, () => false);
  const store = createMemoryStore(clock);
  const all = { 'ep-one': {}, 'ep-two': {}, 'ep-three': {}, ...records };
  const put = async (id: string, more = {}) => {
    const lease = await store.acquireLease('project-p-one', 'before', 1000);
    if (!lease) throw new Error('the lease is held');
    await store.putRecord('p-one', id, aRecord({ lastApplied: CHANGED, ...more }), lease);
    await store.releaseLease(lease);
  };
  for (const [id, more] of Object.entries(all)) await put(id, more);
  const fleet = createFleet({ clock });
  if (daemon) {
    for (const [computeId, more] of Object.entries(all)) {
      const compute = aCompute({ projectId: 'p-one', computeId, ...CHANGED, state: 'idle' });
      const record = aRecord({ lastApplied: CHANGED, ...more });
      const about = { ...daemon, compute, record, nowMs: NOW, mode: 'enforce' as const, projectBusy: false };
      fleet.putEvaluated({ compute, record, ...evaluate(about) });
    }
  }
  const staged = [{ team: '', hash: HASH, message: 'would disconnect', impact: { disconnected: 12, computes: 30 } }];
  const parts = { fleet, mode: 'enforce', policies: () => NONE, owners: () => [], staged: () => staged };
  const operator = createOperator({
    ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW },
    requestReconciles: async () => {},
    ...(daemon && { daemon: { ...parts, revision: () => undefined } as unknown as DaemonView }),
  });
  const restore = (more = {}) => operator.restore({ computes: 'all', owner: 'ann', now: false, ...more });
  const waiting = async () => {
    const requests = [...(await store.records('p-one'))].flatMap(([id, { restore: asked }]) =>
      asked ? [[id, ...(asked.fields ?? ['size', 'suspend_timeout'])].join(' ')] : [],
    );
    return requests.toSorted();
  };
  return { store, operator, restore, waiting, put };
}

const refusedWith = (message: RegExp) => ({
  ok: false,
  error: { code: 'unconfirmed', message: expect.stringMatching(message) },
});

describe('a restore', () => {
  it('of more than one compute needs their number, as it is now', async () => {
    const { restore, waiting } = await aGroup({ records: { 'ep-three': { lastApplied: {} } } });
    expect(await restore()).toMatchObject(refusedWith(/^this concerns 2 computes: nothing was changed; .* confirm 2$/));
    expect(await restore({ confirm: 3 })).toMatchObject(refusedWith(/^this concerns 2 computes now, and 3 were conf/));
    expect(await restore({ preview: true })).toMatchObject({ ok: true, value: { count: 2, computes: [{}, {}, {}] } });
    expect(await waiting()).toEqual([]);
    expect(await restore({ confirm: 2 })).toMatchObject({ ok: true, value: { count: 2 } });
    expect(await waiting()).toEqual(['ep-one size suspend_timeout', 'ep-two size suspend_timeout']);
  });

  it('with --yes goes on with whatever number it is by then, and with a number only if it is still that', async () => {
    const { operator, waiting, put } = await aGroup();
    let added = 0;
    const changing: Pick<typeof operator, 'restore'> = {
      async restore(request) {
        const answer = await operator.restore(request);
        if (request.preview) {
          added += 1;
          await put(`ep-new-${added}`);
        }
        return answer;
      },
    };
    const requests = [{ computes: 'all' as const, owner: 'ann', now: false }];
    await expect(askAndSend(changing, requests, { json: true, confirm: 3 })).rejects.toThrow(
      '4 computes now, and 3 were',
    );
    expect(await waiting()).toEqual([]);
    expect(await askAndSend(changing, requests, { json: true, yes: true })).toMatchObject({ count: 5 });
    expect(await waiting()).toHaveLength(5);
  });

  it('of one compute needs none, but not another one', async () => {
    const { restore, waiting } = await aGroup();
    expect(await restore({ computes: ['ep-one'], confirm: 2 })).toMatchObject({ ok: false });
    expect(await restore({ computes: ['ep-one'] })).toMatchObject({ ok: true, value: { count: 1 } });
    expect(await waiting()).toEqual(['ep-one size suspend_timeout']);
  });

  it.each(['a daemon', 'the last reconcile'])(
    'names the policy that sets what does not go back, by %s',
    async (known) => {
      const setBy = { size: 'night' };
      const both = { size: 'night', suspend_timeout: 'naps' };
      const { restore, waiting } = await aGroup(
        known === 'a daemon'
          ? { daemon: { policies: SIZED } }
          : { records: { 'ep-one': { setBy }, 'ep-two': { setBy }, 'ep-three': { setBy: both } } },
      );
      const { value } = (await restore({ preview: true })) as { value: { computes: object[]; count: number } };
      const partly = { outcome: 'requested', policies_decide: ['size'], set_by: setBy };
      const last = known === 'a daemon' ? partly : { outcome: 'policies_decide', set_by: both };
      expect(value.computes).toMatchObject([partly, partly, last]);
      await restore({ confirm: value.count });
      expect(await waiting()).toEqual(
        ['ep-one', 'ep-three', 'ep-two'].flatMap((id) =>
          id === 'ep-three' && known !== 'a daemon' ? [] : [`${id} suspend_timeout`],
        ),
      );
    },
  );

  it('of a held compute is no matter of policies', async () => {
    const hold = aHold({
      projectId: 'p-one',
      computeId: 'ep-one',
      size: { minCu: 1, maxCu: 1 },
      suspendTimeoutSeconds: 60,
    });
    const { restore } = await aGroup({ daemon: { policies: NONE, holds: [hold] } });
    expect(await restore({ computes: ['ep-one'] })).toMatchObject({ value: { computes: [{ outcome: 'requested' }] } });
  });

  it('is withdrawn for those that are named, or for all, and said of which', async () => {
    const { restore, waiting, store } = await aGroup();
    await restore({ confirm: 3 });
    expect(await restore({ computes: ['ep-two'], cancel: true })).toMatchObject({
      value: { count: 1, computes: [{ compute_id: 'ep-two', outcome: 'withdrawn' }], in_flight: [] },
    });
    expect(await waiting()).toHaveLength(2);
    expect(await restore({ cancel: true, preview: true })).toMatchObject({ value: { count: 2 } });
    expect(await restore({ cancel: true })).toMatchObject({ value: { count: 2 } });
    expect(await waiting()).toEqual([]);
    const { entries } = await store.audit({ sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: 9 });
    expect(entries[0]?.reasons).toMatchObject([{ message: 'the restore request is withdrawn' }]);
  });
});

describe('the end of a freeze', () => {
  const freeze: Freeze = {
    ...{ id: 'f-1', owner: 'ann', reason: 'sale', createdAtMs: NOW - 1, expiresAtMs: NOW + 9e6 },
    ...{ select: 'all' as const, allowRaise: false },
  };
  const other = compiled(aSchedule({ windows: [], otherwise: { size: { minCu: 1, maxCu: 1 } } }));

  it('counts the computes whose changes it holds back, and refuses another number', async () => {
    const { operator, store } = await aGroup({ daemon: { policies: other, freezes: [freeze] } });
    await store.putFreeze(freeze);
    const end = (more = {}) => operator.unfreeze({ id: 'all', owner: 'ann', ...more });
    expect(await end({ preview: true })).toMatchObject({ value: { freezes: ['f-1'], count: 3 } });
    expect(await end({ confirm: 2 })).toMatchObject(refusedWith(/^this concerns 3 computes now, and 2/));
    expect(await store.freezes(NOW)).toHaveLength(1);
    expect(await end({ confirm: 3 })).toMatchObject({ value: { count: 3 } });
    expect(await store.freezes(NOW)).toEqual([]);
  });

  it('without a daemon has the number that the leader told', async () => {
    const { operator, store } = await aGroup();
    await store.putFreeze(freeze);
    const preview = () => operator.unfreeze({ id: 'all', owner: 'ann', preview: true });
    expect(await preview()).not.toHaveProperty('value.count');
    const waiting = [{ reason: 'frozen', computes: 7 }];
    await REPORTS.put(store, 'one', { ...REPORT, waiting });
    expect(await preview()).toMatchObject({ value: { count: 7 } });
  });

  it('is of as many computes as were named when it was set', async () => {
    const { operator } = await aGroup();
    const request = { select: 'all' as const, owner: 'ann', reason: 'sale', forSeconds: 60, allowRaise: false };
    expect(await operator.freeze(request)).toMatchObject({ value: { covers: 3 } });
  });
});

describe('an approval', () => {
  it.each([true, false])('counts what the set would disconnect (asked of a daemon: %s)', async (isDaemon) => {
    const { operator, store } = await aGroup(isDaemon ? { daemon: { policies: NONE } } : {});
    await REPORTS.put(store, 'one', { ...REPORT, staged_sets: [{ hash: HASH, disconnected: 12 }] });
    const approve = (more = {}) => operator.approve({ hash: HASH.slice(0, 12), owner: 'ann', ...more });
    expect(await approve({ preview: true })).toMatchObject({ value: { count: 12 } });
    expect(await approve({ confirm: 11 })).toMatchObject(refusedWith(/^this concerns 12 computes now, and 11/));
    expect(await store.approvals()).toEqual([]);
    expect(await approve({ confirm: 12 })).toMatchObject({ ok: true });
    expect(await store.approvals()).toHaveLength(1);
  });
});

describe('a hash that is refused', () => {
  const see = 'ebb status shows the hashes';
  it.each([
    ['deadbeef', `"deadbeef" is too short: give at least 12 digits of the hash of a policy set; ${see}`],
    ['', `"" is too short: give at least 12 digits of the hash of a policy set; ${see}`],
    ['team-web-1234', `"team-web-1234" is no hash of a policy set, which has only the digits 0-9 and a-f: ${see}`],
    [`${HASH}0`, `"${HASH}0" is no hash of a policy set, which has 64 digits: ${see}`],
    ['deadbeefdead', `no staged policy set begins with deadbeefdead; staged: ${HASH}`],
  ])('says what is wrong: %s', async (hash, message) => {
    const { operator } = await aGroup({ daemon: { policies: NONE } });
    expect(await operator.approve({ hash, owner: 'ann' })).toMatchObject({ ok: false, error: { message } });
  });
});

describe('a release', () => {
  const month = { ...{ fromMs: NOW - 9e8, toMs: NOW + 9e8 }, month: { unit: 'usd', amount: 400 } as const };
  const step = { policy: 'dev-budget', account: 'main', at: 1, of: 'spent' as const };
  const limiting = {
    ...{ policy: 'dev-budget', account: 'main', ...month, spent: 410, projected: null, unknownHours: 0 },
    ...{ knownUntilMs: NOW, decidedAtMs: 0, notified: [], released: [] },
    spans: [{ ...step, fromMs: month.fromMs, untilMs: month.toMs }],
  };

  it('of a budget counts the computes whose values its steps set', async () => {
    const setBy = { size: 'dev-budget' };
    const { operator, store } = await aGroup({ records: { 'ep-one': { setBy }, 'ep-two': { setBy } } });
    await (await openBudgets(store)).replace([limiting]);
    const release = (more = {}) => operator.release({ target: 'budget:dev-budget', owner: 'ann', ...more });
    expect(await release({ preview: true })).toMatchObject({ value: { budgets: ['dev-budget'], count: 2 } });
    expect(await release({ confirm: 1 })).toMatchObject(refusedWith(/^this concerns 2 computes now, and 1 was/));
    expect(await release({ confirm: 2 })).toMatchObject({ value: { budgets: ['dev-budget'] } });
  });

  it('of a compute or a hold changes nothing where it is only looked at', async () => {
    const { operator, store } = await aGroup();
    await store.putHold(aHold({ id: 'h-1', projectId: 'p-one', computeId: 'ep-one', expiresAtMs: NOW + 9e6 }));
    for (const target of ['h-1', 'ep-one']) {
      const preview = await operator.release({ target, owner: 'ann', preview: true });
      expect(preview).toMatchObject({ value: { holds: ['h-1'], count: 1 } });
    }
    expect(await store.holds(NOW)).toHaveLength(1);
  });
});
