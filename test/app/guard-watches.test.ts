/** What a guard finds after a lowering is stored and told once, wherever a leader is stopped between two steps. */
import { describe, expect, it } from 'vitest';
import { type EvaluateDeps, evaluateCompute } from '../../src/app/evaluate-project/evaluate.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import type { GuardAnswer } from '../../src/app/guards/ask.ts';
import { WATCHES } from '../../src/app/guards/stored-states.ts';
import { createGuardWatches, type GuardWatchesDeps } from '../../src/app/guards/watches.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { Verdict } from '../../src/domain/guards/verdict.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { GuardPolicy } from '../../src/domain/policy/kinds/guard.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import {
  aCompute,
  aFreeze,
  aGuard,
  aHold,
  aLimits,
  aRecord,
  aSchedule,
  at,
  currentRules,
  FREE_SLOTS,
} from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import type { SteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const SIX = at('2026-03-02T18:00:00Z');
const MINUTE_MS = 60_000;
const LARGE = { minCu: 1, maxCu: 4 };
const SMALL = { minCu: 0.25, maxCu: 1 };
const receiver = { name: 'ops', to: 'webhook', url: { from: 'text', text: 'http://localhost' } } as const;

/** A compute that was lowered at six, as the record says. */
const loweredAtSix = (more: Partial<ComputeRecord> = {}): ComputeRecord =>
  aRecord({
    lastApplied: { ...SMALL, suspendTimeoutSeconds: 300 },
    lastChanges: { size: { before: LARGE, answeredAtMs: SIX } },
    setBy: { size: 'office-hours' },
    ...more,
  });

interface Setting {
  records?: Record<string, ComputeRecord>;
  guard?: GuardPolicy;
  holds?: Hold[];
  /** Other policies than the schedule and the guard. */
  others?: Policy[];
  freezes?: Freeze[];
}

/** Whether the daemon leads, and whether it may write. */
const LEADS = { isHeld: true, ok: true };

async function setUp({ records = { 'ep-one': loweredAtSix() }, guard = aGuard(), ...setting }: Setting = {}) {
  const { holds = [], others = [], freezes = [] } = setting;
  const time = { ms: SIX };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms } as SteppedClock;
  const store = createMemoryStore(clock);
  const fleet = createFleet({ clock });
  const rules = currentRules(aSchedule(), guard, ...others);
  rules.current.notify = { receivers: [{ ...receiver, allowedOrigins: [], file: 'ebb.yaml' }] };
  const log = memoryLog();
  const counted: string[] = [];
  const cleared: string[] = [];
  const queued: string[] = [];
  const metrics = {
    set: () => {},
    clear: (name: string) => cleared.push(name),
    increment: (name: string, { outcome }: Record<string, string>) => counted.push(`${name} ${outcome}`),
  };
  const computes = Object.keys(records).map((computeId) => aCompute({ computeId, ...SMALL }));
  const lease = await store.acquireLease('project-p-one', 'test', 1_000);
  if (!lease) throw new Error('no lease');
  for (const [computeId, record] of Object.entries(records)) await store.putRecord('p-one', computeId, record, lease);
  await store.releaseLease(lease);
  const deciding = {
    ...{ clock, rules, mode: 'enforce', overrides: { holds, freezes, revision: 0 } },
    ...{
      samples: { historyOf: () => new Map() },
      slots: FREE_SLOTS,
    },
  } as unknown as EvaluateDeps;
  const leader = (calls: { left: number }, may = LEADS) =>
    createGuardWatches({
      evaluate: (subject: Parameters<GuardWatchesDeps['evaluate']>[0]) => evaluateCompute(deciding, subject),
      ...{ fleet, rules, mode: 'enforce', holder: 'test', telemetry: { log, metrics } },
      store: dying(store, calls),
      leaderLease: { isHeld: () => may.isHeld },
      mayWrite: async () => ({ ok: may.ok }),
      queue: { add: async (_name: string, { key }: { key: string }) => void queued.push(key) },
    } as unknown as GuardWatchesDeps);
  const round = async (
    watches: ReturnType<typeof createGuardWatches>,
    ms: number,
    stateOf: (computeId: string) => Verdict['state'],
  ) => {
    time.ms = ms;
    const stored = await store.records('p-one');
    for (const compute of computes)
      fleet.putEvaluated({ compute, record: stored.get(compute.computeId), decision: { trace: [], holds } } as never);
    await watches.advance(guard, computes, answer(computes, stateOf), ms);
  };
  const found = async () => (await store.records('p-one')).get('ep-one')?.guardFinding;
  const told = async () =>
    (await store.outbox({ receiver: 'ops', state: 'waiting', limit: 100 })).map(({ body }) => JSON.parse(body));
  const audited = async () => (await store.history({ limit: 100 })).filter(({ kind }) => kind === 'guard');
  return { leader, round, found, told, audited, counted, cleared, queued, store };
}

function answer(computes: readonly Compute[], stateOf: (computeId: string) => Verdict['state']): GuardAnswer {
  const verdicts = new Map(computes.map(({ computeId }) => [computeId, { state: stateOf(computeId), message: '' }]));
  return { verdicts, sinceLowered: verdicts };
}

/** A store whose daemon is killed at a call: it comes to nothing, or it is done and nobody is told. */
function dying<S extends object>(store: S, calls: { left: number }): S {
  return new Proxy(store, {
    get(target, name) {
      const own = Reflect.get(target, name) as unknown;
      if (typeof own !== 'function') return own;
      return async (...given: unknown[]) => {
        calls.left -= 0.5;
        if (calls.left === 0) throw new Error('killed');
        const result: unknown = await Reflect.apply(own, target, given);
        calls.left -= 0.5;
        if (calls.left === 0) throw new Error('killed');
        return result;
      };
    },
  });
}

const NEVER = () => ({ left: Number.POSITIVE_INFINITY });
const ALL_BAD = () => 'bad' as const;

describe('a leader that watches', () => {
  it('stores a harm with its audit and its message, tells it once, and asks for a reconcile', async () => {
    const one = await setUp();
    const watches = one.leader(NEVER());
    for (let ms = 0; ms <= 30 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
    const finding = { guard: 'latency', from: LARGE, to: SMALL, loweredAtMs: SIX, badSinceMs: SIX + 2 * MINUTE_MS };
    expect(await one.found()).toEqual({ ...finding, foundAtMs: SIX + 5 * MINUTE_MS, remedy: 'notify' });
    const text =
      'ep-one: guard latency is bad since 2026-03-02T18:02:00Z, after size 1-4 → 0.25-1 CU at 2026-03-02T18:00:00Z; nothing is set back';
    expect(await one.told()).toMatchObject([{ kind: 'guard', compute: 'ep-one', policy: 'latency', text }]);
    expect(await one.audited()).toMatchObject([
      { computeId: 'ep-one', policy: 'latency', from: LARGE, to: SMALL, reasons: [{ code: 'guard_harm' }] },
    ]);
    expect(one.counted).toEqual(['ebb_guard_watches_total harm']);
    expect(one.queued).toEqual(['p-one']);
  });

  it('loses nothing and stores nothing twice, at whichever call it is killed', async () => {
    let kills = 0;
    for (let half = 1; half < 400; half += 1) {
      const one = await setUp();
      const calls = { left: half / 2 };
      let watches = one.leader(calls);
      let isKilled = false;
      for (let ms = 0; ms <= 12 * MINUTE_MS; ms += 30_000) {
        await one.round(watches, SIX + ms, ALL_BAD).catch(() => {
          isKilled = true;
          watches = one.leader(NEVER());
        });
      }
      // A round that was not stored is as if it had not been.
      const { badSinceMs = 0 } = (await one.found()) ?? {};
      expect([0, 30_000]).toContain(badSinceMs - SIX - 2 * MINUTE_MS);
      expect(await one.audited()).toHaveLength(1);
      expect(await one.told()).toHaveLength(1);
      if (!isKilled) break;
      kills += 1;
    }
    expect(kills).toBeGreaterThan(20);
    expect(kills).toBeLessThan(399);
  });

  it.each(['at once', 'with its next round'])('goes on with the watch that the store has lost, %s', async (when) => {
    const one = await setUp();
    const watches = one.leader(NEVER());
    for (let ms = 0; ms <= 3 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
    const known = await WATCHES.all(one.store);
    await WATCHES.delete(one.store, ['latency']);
    if (when === 'at once') {
      await watches.writeBack();
      expect(await WATCHES.all(one.store)).toEqual(known);
    }
    for (let ms = 3.5 * MINUTE_MS; ms <= 5 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
    expect(await one.found()).toMatchObject({ badSinceMs: SIX + 2 * MINUTE_MS, foundAtMs: SIX + 5 * MINUTE_MS });
    await watches.keepOnly([aGuard()]);
    await WATCHES.delete(one.store, ['latency']);
    await watches.keepOnly([]);
    await watches.writeBack();
    expect(await WATCHES.all(one.store)).toEqual(new Map());
  });

  it('does not watch what a person has changed since, what failed, or what was found before', async () => {
    const mark = { fields: LARGE, seenAtMs: SIX + 1, raises: true };
    const failure = { count: 1, lastAtMs: SIX + 1, desired: SMALL, message: 'no capacity' };
    const finding = {
      guard: 'latency',
      from: LARGE,
      to: SMALL,
      loweredAtMs: SIX,
      badSinceMs: SIX,
      foundAtMs: SIX,
      remedy: 'notify' as const,
    };
    for (const more of [
      { manual: { size: mark } },
      { failures: { size: failure } },
      { guardFinding: finding },
      { lastChanges: { size: { before: { minCu: 0.25, maxCu: 0.5 }, answeredAtMs: SIX } } },
    ]) {
      const one = await setUp({ records: { 'ep-one': loweredAtSix(more) } });
      const watches = one.leader(NEVER());
      for (let ms = 0; ms <= 10 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
      expect(await one.audited()).toEqual([]);
      expect(await one.told()).toEqual([]);
    }
  });

  it('does not watch what a person holds: that was no policy', async () => {
    const one = await setUp({ holds: [aHold({ size: SMALL })] });
    const watches = one.leader(NEVER());
    for (let ms = 0; ms <= 10 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
    expect([await one.found(), await one.told()]).toEqual([undefined, []]);
  });

  it('says what an undo costs, and what it waits for', async () => {
    const texts = async (setting: Setting) => {
      const one = await setUp(setting);
      const watches = one.leader(NEVER());
      for (let ms = 0; ms <= 10 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
      return (await one.told()).map(({ text }: { text: string }) => text.split('; ').slice(1).join('; '));
    };
    const undo = aGuard({ remedy: 'undo' });
    const restarts = aGuard({ remedy: 'undo_with_restart' });
    const kept = 'it is not lowered again before its policy changes, or retry of the guard, if set, is over';
    expect(await texts({ guard: undo })).toEqual([`the size goes back when it next sleeps; ${kept}`]);
    expect(await texts({ guard: restarts })).toEqual([
      `the size goes back now, which restarts it and drops its connections; ${kept}`,
    ]);
    const frozen = { guard: restarts, others: [aFreeze({ name: 'release-week' })] };
    expect(await texts(frozen)).toEqual([
      expect.stringMatching(/^it can't be set back now: .*release-week.*; it is not/),
    ]);
    const byPerson = { ...aHold(), select: 'all', allowRaise: false, reason: 'an incident' } as never;
    expect(await texts({ guard: restarts, freezes: [byPerson] })).toEqual([
      expect.stringMatching(/^it can't be set back now: .*an incident/),
    ]);
    expect(await texts({ guard: restarts, others: [aFreeze({ allowRaise: true })] })).toEqual([
      expect.stringContaining('the size goes back now'),
    ]);
    const limited = { guard: restarts, others: [aLimits({ name: 'ceiling', size: { maxCu: 2 }, hard: true })] };
    expect(await texts(limited)).toEqual([`it can't be set back now: limits ceiling (1-4 CU → 1-2 CU); ${kept}`]);
  });

  it('watches a shorter timeout too', async () => {
    const change = { before: { suspendTimeoutSeconds: -1 }, answeredAtMs: SIX };
    const one = await setUp({ records: { 'ep-one': loweredAtSix({ lastChanges: { suspend_timeout: change } }) } });
    const watches = one.leader(NEVER());
    for (let ms = 0; ms <= 10 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
    expect(await one.found()).toMatchObject({
      from: { suspendTimeoutSeconds: -1 },
      to: { suspendTimeoutSeconds: 300 },
    });
  });

  it('tells of a cause that computes share once for all, and of a guard that says nothing', async () => {
    const records = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`ep-${index}`, loweredAtSix()]));
    const common = await setUp({ records });
    const watches = common.leader(NEVER());
    for (let ms = 0; ms <= 20 * MINUTE_MS; ms += 30_000) await common.round(watches, SIX + ms, ALL_BAD);
    const [message, ...more] = await common.told();
    expect(message).toMatchObject({
      kind: 'guard',
      compute: null,
      text: expect.stringContaining('ep-2 and 2 more bad'),
    });
    expect(more).toEqual([]);
    expect(await common.audited()).toEqual([]);
    const blind = await setUp();
    const others = blind.leader(NEVER());
    for (let ms = 0; ms <= 40 * MINUTE_MS; ms += 30_000) await blind.round(others, SIX + ms, () => 'unknown');
    expect(await blind.told()).toMatchObject([{ kind: 'guard', command: 'ebb guard test latency' }]);
    expect(blind.counted).toEqual(['ebb_guard_watches_total no_samples']);
  });

  it('forgets the watches of other guards only while it may write, and shows none once it leads no more', async () => {
    const one = await setUp();
    const may = { isHeld: true, ok: true };
    const watches = one.leader(NEVER(), may);
    await one.round(watches, SIX + 30_000, ALL_BAD);
    const stored = async () => (await one.store.document('guard-watches', 'latency')) !== undefined;
    await watches.keepOnly([aGuard()]);
    may.ok = false;
    await watches.keepOnly([]);
    expect(await stored()).toBe(true);
    may.ok = true;
    await watches.keepOnly([aGuard()]);
    one.cleared.length = 0;
    may.isHeld = false;
    await watches.keepOnly([aGuard()]);
    await watches.keepOnly([aGuard()]);
    expect(one.cleared).toEqual(['ebb_guard_watched', 'ebb_guard_floors']);
    may.isHeld = true;
    await watches.keepOnly([]);
    expect(await stored()).toBe(false);
  });

  it('begins anew where the guard asks something else', async () => {
    const one = await setUp();
    const watches = one.leader(NEVER());
    for (let ms = 0; ms <= 4 * MINUTE_MS; ms += 30_000) await one.round(watches, SIX + ms, ALL_BAD);
    const other = aGuard({ forMs: 60_000 });
    const before = await one.store.document('guard-watches', 'latency');
    await watches.advance(other, [], answer([], ALL_BAD), SIX + 5 * MINUTE_MS);
    expect(before).toContain('ep-one');
    expect(await one.found()).toBeUndefined();
  });
});
