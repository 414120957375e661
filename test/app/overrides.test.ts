import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { createOverrides, type Overrides, readByStoreTime } from '../../src/app/overrides.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { Store, StoredOverrides } from '../../src/ports/store.ts';
import { aCompute } from '../support/builders.ts';
import { openTestEngine } from '../support/engines.ts';
import { memoryLog } from '../support/memory-log.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const NOW_MS = 1_700_000_000_000;
const COMMON = { owner: 'zoe', reason: 'incident', createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 60_000 };
const FREEZE: Freeze = { ...COMMON, id: 'f-1', select: 'all', allowRaise: false };
const HOLD: Hold = { ...COMMON, id: 'h-1', projectId: 'one', computeId: 'ep-one', size: { minCu: 4, maxCu: 4 } };

/** What `ebb thaw` of 0.1.0 (commit 3aca383) runs on Redis. */
const DELETE_OF_0_1_0 = `
local gone = redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
if gone == 1 then redis.call('SET', KEYS[3], ARGV[2]) end
return gone
`;

const idsOf = ({ freezes, holds }: StoredOverrides) => [...freezes, ...holds].map(({ id }) => id);

describeWith('redis-server', 'what people said', () => {
  let server: RedisServer;
  let opened: Awaited<ReturnType<typeof openTestEngine>>;
  let store: Store;
  let log: ReturnType<typeof memoryLog>;
  let kept: StoredOverrides[];

  beforeAll(async () => {
    server = await startRedisServer();
    opened = await openTestEngine(server.url);
  });
  afterAll(async () => {
    await opened.engine.close();
    await server.close();
  });
  beforeEach(async () => {
    await redis().flushall();
    store = await createStore(opened);
    log = memoryLog();
    kept = [];
    await store.putFreeze(FREEZE);
    await store.putHold(HOLD);
  });

  function redis() {
    if (opened.engine.kind !== 'redis') throw new Error('not on Redis');
    return opened.engine.commands;
  }

  function aDaemon(remembered?: StoredOverrides): Overrides {
    const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
    const keep = async (said: StoredOverrides) => void kept.push(said);
    return createOverrides({ telemetry: { log, metrics }, remembered, save: keep });
  }

  async function daemonThatHasRead(ids = ['f-1', 'h-1']): Promise<Overrides> {
    const overrides = aDaemon();
    await overrides.refresh(store, NOW_MS);
    expect(idsOf(overrides)).toEqual(ids);
    return overrides;
  }

  it('stays active when the store comes back empty, and is restored once', async () => {
    const overrides = await daemonThatHasRead();
    await redis().flushall();
    await overrides.refresh(store, NOW_MS + 1);
    expect(idsOf(overrides)).toEqual(['f-1', 'h-1']);
    expect([await store.freezes(NOW_MS), await store.holds(NOW_MS)]).toEqual([[FREEZE], [HOLD]]);
    await overrides.refresh(store, NOW_MS + 2);
    expect(log.lines.map(({ fields }) => fields)).toMatchObject([
      { event: 'ebb.override_restored', kind: 'freeze', id: 'f-1' },
      { event: 'ebb.override_restored', kind: 'hold', id: 'h-1' },
    ]);
  });

  it('stays active when another daemon has written to the store that came back empty', async () => {
    const overrides = await daemonThatHasRead();
    await redis().flushall();
    await store.storeId();
    await store.putFreeze({ ...FREEZE, id: 'f-2', createdAtMs: NOW_MS - 1 });
    await overrides.refresh(store, NOW_MS + 1);
    expect(idsOf(overrides)).toEqual(['f-2', 'f-1', 'h-1']);
  });

  it('stays active when a store is promoted that is older than the freeze', async () => {
    const overrides = await daemonThatHasRead();
    const id = await store.storeId();
    const [freezes = ''] = await redis().keys('*:store:freezes');
    await redis().hdel(freezes, 'f-1');
    await redis().set(`${freezes}:revision`, 'older');
    await overrides.refresh(store, NOW_MS + 1);
    expect(await store.storeId()).toBe(id);
    expect(await store.freezes(NOW_MS)).toEqual([FREEZE]);
  });

  it('stays active when a daemon of 0.1.0 ends it, which leaves no word of that, and is over once this version ends it', async () => {
    const overrides = await daemonThatHasRead();
    const [freezes = ''] = await redis().keys('*:store:freezes');
    await redis().eval(DELETE_OF_0_1_0, 3, freezes, `${freezes}:ends`, `${freezes}:revision`, 'f-1', 'another');
    expect(await store.freezes(NOW_MS)).toEqual([]);
    await overrides.refresh(store, NOW_MS + 1);
    expect([idsOf(overrides), await store.freezes(NOW_MS)]).toEqual([['f-1', 'h-1'], [FREEZE]]);
    expect(log.lines.map(({ fields }) => fields)).toMatchObject([{ event: 'ebb.override_restored', id: 'f-1' }]);
    await store.deleteFreeze('f-1');
    await overrides.refresh(store, NOW_MS + 2);
    expect([idsOf(overrides), await store.freezes(NOW_MS)]).toEqual([['h-1'], []]);
  });

  it('no longer counts once somebody has ended it, elsewhere too, or it has expired', async () => {
    const overrides = await daemonThatHasRead();
    const other = await createStore(opened);
    await other.deleteFreeze('f-1');
    await overrides.refresh(store, NOW_MS + 1);
    expect(idsOf(overrides)).toEqual(['h-1']);
    await redis().flushall();
    await overrides.refresh(store, HOLD.expiresAtMs);
    expect(idsOf(overrides)).toEqual([]);
    expect(await store.holds(NOW_MS)).toEqual([]);
  });

  it('is known for a while after it ended, of a compute that it kept as it was', async () => {
    const compute = aCompute({ computeId: 'ep-one' });
    await store.putHold({ ...HOLD, id: 'h-2', freeze: true });
    const overrides = await daemonThatHasRead(['f-1', 'h-1', 'h-2']);
    expect(overrides.lastThawOf(compute)).toBeUndefined();
    await store.deleteFreeze('f-1');
    await overrides.refresh(store, NOW_MS + 1_000);
    const frozen = { atMs: NOW_MS + 1_000, message: 'frozen by zoe until 2023-11-14T22:13:21Z: incident' };
    expect(overrides.lastThawOf(compute)).toEqual(frozen);
    await overrides.refresh(store, HOLD.expiresAtMs + 5_000);
    expect(overrides.lastThawOf(compute)).toEqual({
      ...{ atMs: HOLD.expiresAtMs, message: 'held as it was by zoe until 2023-11-14T22:14:20Z: incident' },
    });
    expect(overrides.snapshot().lastThawOf(aCompute({ computeId: 'ep-two' }))).toEqual(frozen);
    await overrides.refresh(store, HOLD.expiresAtMs + 6 * 3_600_000);
    expect(overrides.lastThawOf(compute)).toBeUndefined();
  });

  it('is not forgotten by a daemon whose clock is 400 days ahead while the store comes back empty', async () => {
    const ahead = 400 * 86_400_000;
    const overrides = readByStoreTime(await daemonThatHasRead(), { excessiveOffsetMs: async () => ahead });
    await overrides.refresh(store, NOW_MS + 1 + ahead);
    await redis().flushall();
    await overrides.refresh(store, NOW_MS + 2 + ahead);
    expect(idsOf(overrides)).toEqual(['f-1', 'h-1']);
    expect([await store.freezes(NOW_MS), await store.holds(NOW_MS)]).toEqual([[FREEZE], [HOLD]]);
  });

  it('is not put back by a daemon that has not read that it was ended', async () => {
    const slow = await daemonThatHasRead();
    await store.deleteFreeze('f-1');
    await store.deleteHold('h-1');
    const restarted = aDaemon({ holds: slow.holds, freezes: slow.freezes });
    await restarted.refresh(store, NOW_MS + 1);
    expect([idsOf(restarted), await store.freezes(NOW_MS), await store.holds(NOW_MS)]).toEqual([[], [], []]);
  });

  it('is kept when it changes, and known to the next daemon, which puts it back into a store that was lost meanwhile', async () => {
    const overrides = await daemonThatHasRead();
    await overrides.refresh(store, NOW_MS + 1);
    expect(kept).toEqual([{ holds: [HOLD], freezes: [FREEZE] }]);
    await redis().flushall();
    const next = aDaemon(kept[0]);
    await next.refresh(store, NOW_MS + 2);
    expect(idsOf(next)).toEqual(['f-1', 'h-1']);
    expect([await store.freezes(NOW_MS), await store.holds(NOW_MS)]).toEqual([[FREEZE], [HOLD]]);
  });

  it('stays active when the store has no room for it', async () => {
    const overrides = await daemonThatHasRead();
    await redis().flushall();
    const small = await createStore({ ...opened, limits: { freezes: 1 } });
    await small.putFreeze({ ...FREEZE, id: 'f-2' });
    await overrides.refresh(small, NOW_MS + 1);
    expect(idsOf(overrides)).toEqual(['f-2', 'f-1', 'h-1']);
  });
});
