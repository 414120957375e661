import { describe, expect, it } from 'vitest';
import type { ComputeSettings } from '../../../src/domain/compute/compute.ts';
import { atMostAllowed, atOnceAllowed } from '../../../src/domain/plan/gates/disruption.ts';
import type { DisruptionRule, PartialDisruption } from '../../../src/domain/policy/disruption.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import type { ComputeRecord } from '../../../src/domain/records/compute-record.ts';
import {
  aCompute,
  aHeadroom,
  aHold,
  aRecord,
  aRestart,
  aSchedule,
  at,
  aWindow,
  compiled,
  countsUntil,
  planFor,
} from '../../support/builders.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const EIGHT = at('2026-03-02T08:00:00Z');
const SIX = at('2026-03-02T18:00:00Z');
const size = (minCu: number, maxCu = minCu) => ({ minCu, maxCu });
const day = (disruption?: PartialDisruption, fields: Partial<Policy> = {}) =>
  ({ ...aSchedule({ ...(disruption && { disruption }) }), ...fields }) as Policy;
const large = aCompute(size(1, 4));
const small = aCompute(size(0.25, 1));
type Options = Partial<Parameters<typeof planFor>[0]>;

const planWith = (policy: Policy | Policy[], options: Options) =>
  planFor({ policies: compiled(...[policy].flat()), compute: large, record: aRecord(), nowMs: SIX, ...options });
const held = (policy: Policy | Policy[], options: Options) => {
  const { heldBy, untilMs } = planWith(policy, options);
  return untilMs === undefined ? heldBy : [...heldBy, untilMs];
};

describe('the moment of a change', () => {
  it('is any for a raise, and sleep for a lowering, two hours at most', () => {
    expect(held(day(), { compute: small, nowMs: EIGHT })).toEqual([]);
    const waiting = planWith(day(), {});
    expect(waiting).toMatchObject({ heldBy: ['waiting_for_idle'], untilMs: SIX + 2 * HOUR_MS });
    expect(waiting.reasons.at(-1)?.message).toBe(
      'it would disconnect clients: waiting for sleep, at the latest until 2026-03-02T20:00:00Z',
    );
    expect(held(day(), { nowMs: SIX + 2 * HOUR_MS - 1 })).toEqual(['waiting_for_idle', SIX + 2 * HOUR_MS]);
    expect(held(day(), { nowMs: SIX + 2 * HOUR_MS })).toEqual([]);
  });

  it('has come when it disconnects nobody: a timeout, or a compute that sleeps', () => {
    expect(held(day(), { compute: { ...large, state: 'idle' } })).toEqual([]);
    const plan = planWith(day(), { compute: { ...large, suspendTimeoutSeconds: -1 } });
    expect(plan).toMatchObject({ verdict: 'act', actions: [{ fields: { suspendTimeoutSeconds: 300 } }] });
    expect(plan).toMatchObject({ heldBy: ['waiting_for_idle'], untilMs: SIX + 2 * HOUR_MS });
  });

  it('is as the policy says, else as the settings say, key by key', () => {
    const whenAny: DisruptionRule = { when: 'any', atDeadline: 'apply' };
    const whenIdle: DisruptionRule = { when: 'idle', atDeadline: 'apply' };
    expect(held(day(), { disruption: { lower: whenAny } })).toEqual([]);
    expect(held(day({ lower: whenIdle }), { disruption: { lower: whenAny } })).toEqual(['waiting_for_idle']);
    expect(held(day({ raise: whenIdle }), { disruption: { lower: whenAny } })).toEqual([]);
    expect(held(day({ raise: whenIdle }), { compute: small, nowMs: EIGHT })).toEqual(['waiting_for_idle']);
  });

  it('counts by its maximum: one end up and the other down', () => {
    const when = { raise: { when: 'any', atDeadline: 'apply' }, lower: { when: 'idle', atDeadline: 'apply' } } as const;
    const wanting = (wanted: ReturnType<typeof size>) =>
      aSchedule({ windows: [], otherwise: { size: wanted }, disruption: when });
    expect(held(wanting(size(0.5, 6)), {})).toEqual([]);
    expect(held(wanting(size(2, 3)), {})).toEqual(['waiting_for_idle']);
    expect(held(wanting(size(2, 4)), {})).toEqual([]);
    expect(held(wanting(size(0.5, 4)), {})).toEqual(['waiting_for_idle']);
  });

  describe('quiet', () => {
    const quiet = day({ lower: { when: 'quiet', atDeadline: 'apply' } });

    it('is fewer connections than quiet_below', () => {
      expect(held(quiet, { connections: countsUntil(SIX, 2) })).toEqual([]);
      const waiting = planWith(quiet, { connections: countsUntil(SIX, 3) });
      expect(waiting.reasons.at(-1)).toMatchObject({
        code: 'waiting_for_quiet',
        message: '3 connections: waiting for fewer than 3',
      });
      expect(held(quiet, { connections: countsUntil(SIX, 3), disruption: { quietBelow: 4 } })).toEqual([]);
    });

    it('is not what nobody counted, or counted too long ago', () => {
      const message = 'the number of connections is not known: waiting for fewer than 3';
      expect(planWith(quiet, {}).reasons.at(-1)?.message).toBe(message);
      const stale = countsUntil(SIX - 5 * MINUTE_MS - 1, 0);
      expect(planWith(quiet, { connections: stale }).reasons.at(-1)?.message).toBe(message);
      expect(held(quiet, { connections: countsUntil(SIX - 5 * MINUTE_MS, 0) })).toEqual([]);
    });

    it('counts by the latest of several sources', () => {
      const connections = new Map([
        [
          'a',
          [
            { atMs: SIX, connections: 0 },
            { atMs: SIX + 1, connections: 9 },
          ],
        ],
        ['b', [{ atMs: SIX - 1, connections: 9 }]],
      ]);
      expect(held(quiet, { connections })).toEqual([]);
    });
  });
});

describe('the deadline', () => {
  const skip = (when: 'idle' | 'quiet' | 'any') => day({ lower: { when, deadlineMs: HOUR_MS, atDeadline: 'skip' } });

  it('may mean that a change is skipped until the next boundary of its field', () => {
    const next = at('2026-03-03T08:00:00Z');
    expect(held(skip('idle'), { nowMs: SIX + HOUR_MS - 1 })).toEqual(['waiting_for_idle', SIX + HOUR_MS]);
    expect(held(skip('idle'), { nowMs: SIX + HOUR_MS })).toEqual(['deadline', next]);
    expect(held(skip('any'), { nowMs: SIX + HOUR_MS })).toEqual([]);
    expect(planWith(skip('idle'), { nowMs: SIX + HOUR_MS }).reasons.at(-1)?.message).toBe(
      'its condition was not met before the deadline: skipped until the next boundary',
    );
  });

  it('that was missed stays missed, whatever moment comes', () => {
    const quietLater = { nowMs: SIX + HOUR_MS, connections: countsUntil(SIX + HOUR_MS, 0) };
    expect(held(skip('quiet'), quietLater)[0]).toBe('deadline');
    expect(held(skip('quiet'), { ...quietLater, compute: { ...large, state: 'idle' } })).toEqual([]);
  });

  it('does not matter while the moment is there before it', () => {
    const quiet = { nowMs: SIX + HOUR_MS - 1, connections: countsUntil(SIX, 0) };
    expect(held(skip('quiet'), { ...quiet, connections: countsUntil(SIX + HOUR_MS - 1, 0) })).toEqual([]);
    const forEver = day({ lower: { when: 'quiet', atDeadline: 'skip' } });
    expect(held(forEver, { ...quiet, nowMs: SIX, connections: countsUntil(SIX, 0) })).toEqual([]);
  });

  it('that nothing ends has no instant', () => {
    const once = aSchedule({
      windows: [{ at: [{ kind: 'interval', startMs: 0, endMs: SIX }], size: size(1, 4) }],
      disruption: { lower: { when: 'idle', deadlineMs: HOUR_MS, atDeadline: 'skip' } },
    });
    expect(held(once, { nowMs: SIX + HOUR_MS })).toEqual(['deadline']);
  });

  it('counts from the start of the window, also where a lead began the attempt', () => {
    const raise: DisruptionRule = { when: 'idle', deadlineMs: 10 * MINUTE_MS, atDeadline: 'apply' };
    const ready = aSchedule({
      windows: [{ at: [aWindow()], size: size(1, 4), readyLeadMs: 10 * MINUTE_MS }],
      disruption: { raise },
    });
    const until = EIGHT + 10 * MINUTE_MS;
    expect(held(ready, { compute: small, nowMs: EIGHT - 5 * MINUTE_MS })).toEqual(['waiting_for_idle', until]);
    expect(held(ready, { compute: small, nowMs: EIGHT })).toEqual(['waiting_for_idle', until]);
    expect(held(ready, { compute: small, nowMs: until })).toEqual([]);
  });

  it('counts from when something else was wanted, where no boundary of the policies tells it', () => {
    const wanted = (fields: Partial<ComputeSettings>, sinceMs: number) =>
      aRecord({ wanted: { size: { fields, sinceMs } } });
    const untilAt = (record: ComputeRecord, nowMs: number) => held(day(), { record, nowMs })[1];
    const night = size(0.25, 1);
    // A hold, or headroom, wanted more until now; and then less since seven.
    expect(untilAt(wanted(size(8), SIX), SIX + HOUR_MS)).toBe(SIX + 3 * HOUR_MS);
    expect(untilAt(wanted(night, SIX + HOUR_MS), SIX + 2 * HOUR_MS)).toBe(SIX + 3 * HOUR_MS);
    // What the day's window wanted was seen before an outage: the boundary was at six.
    expect(untilAt(wanted(size(1, 4), SIX - 10 * HOUR_MS), SIX + HOUR_MS)).toBe(SIX + 2 * HOUR_MS);
  });

  it('does not exist where none is written', () => {
    expect(held(day({ lower: { when: 'idle', atDeadline: 'skip' } }), { nowMs: SIX + 5 * HOUR_MS })).toEqual([
      'waiting_for_idle',
    ]);
  });
});

describe('cooldown', () => {
  const any = { lower: { when: 'any', atDeadline: 'apply' } } as const;
  const restarted = (lowered: boolean): ComputeRecord => aRecord({ lastDisruption: { atMs: SIX, lowered } });

  it('holds what would restart a compute again too soon', () => {
    const plan = planWith(day(any), { record: restarted(true), nowMs: SIX + 1 });
    expect(plan).toMatchObject({ heldBy: ['cooldown'], untilMs: SIX + 10 * MINUTE_MS });
    expect(plan.reasons.at(-1)?.message).toBe(
      'restarted at 2026-03-02T18:00:00Z; not again before 2026-03-02T18:10:00Z',
    );
    expect(held(day(any), { record: restarted(true), nowMs: SIX + 10 * MINUTE_MS })).toEqual([]);
    expect(held(day({ ...any, cooldownMs: MINUTE_MS }), { record: restarted(true), nowMs: SIX + MINUTE_MS })).toEqual(
      [],
    );
  });

  it('never delays a raise after a lowering, but one after a raise', () => {
    const raise = { compute: aCompute(size(0.25)), nowMs: SIX + 1 };
    expect(held(day(), { ...raise, record: restarted(true) })).toEqual([]);
    expect(held(day(), { ...raise, record: restarted(false) })).toEqual(['cooldown', SIX + 10 * MINUTE_MS]);
  });

  it('never delays what disconnects nobody', () => {
    expect(held(day(any), { record: restarted(false), nowMs: SIX, compute: { ...large, state: 'idle' } })).toEqual([]);
  });
});

it('a hold does not wait for the time since the last restart', () => {
  const hold = aHold({ size: size(8), createdAtMs: SIX, expiresAtMs: SIX + HOUR_MS });
  const record = aRecord({ lastDisruption: { atMs: SIX - MINUTE_MS, lowered: false } });
  const plan = planWith(day(), { record, nowMs: SIX + 1, holds: [hold] });
  expect(plan).toMatchObject({ verdict: 'act', actions: [{ fields: size(8), disconnects: true }] });
});

describe('the budget at once', () => {
  it('is a share of the computes of a policy, rounded down, and five at least', () => {
    expect([0, 50, 59, 60, 100].map((selected) => atOnceAllowed(selected, 0.1))).toEqual([5, 5, 5, 6, 10]);
    expect([0.29, 0.57].map((share) => atOnceAllowed(100, share))).toEqual([29, 57]);
  });

  it('holds what would restart one more', () => {
    const asked: unknown[] = [];
    const isAtOnceReached = ({ policy }: { policy: string }, share: number) => asked.push([policy, share]) > 0;
    const plan = planWith(day(), { compute: small, nowMs: EIGHT, isAtOnceReached });
    expect(plan).toMatchObject({ verdict: 'wait', heldBy: ['at_once'], untilMs: EIGHT + 5_000 });
    expect(plan.reasons.at(-1)?.message).toBe('office-hours is restarting as many computes as it may');
    expect(asked).toEqual([['office-hours', 0.1]]);
    expect(held(day(), { compute: { ...small, state: 'idle' }, nowMs: EIGHT, isAtOnceReached })).toEqual([]);
    expect(held(day(), { compute: small, nowMs: EIGHT, isAtOnceReached: () => false })).toEqual([]);
  });

  it('is asked last, so that only what would be made counts', () => {
    let asked = 0;
    const isAtOnceReached = () => {
      asked += 1;
      return true;
    };
    expect(held(day(), { isAtOnceReached })[0]).toBe('waiting_for_idle');
    expect(asked).toBe(0);
  });
});

describe('the limit of restarts within a time', () => {
  const limited = { atMost: { share: 0.3, windowMs: 10 * MINUTE_MS } };

  it('is a share of the computes of a policy, rounded down, and one at least', () => {
    expect([0, 3, 4, 10, 99].map((selected) => atMostAllowed(selected, limited.atMost))).toEqual([1, 1, 1, 3, 29]);
    expect([0.29, 0.57].map((share) => atMostAllowed(100, { share, windowMs: 1 }))).toEqual([29, 57]);
  });

  it('holds what would restart one more, where the policy has such a limit', () => {
    const asked: unknown[] = [];
    const isAtMostReached = ({ policy }: { policy: string }, limit: object) => asked.push([policy, limit]) > 0;
    const plan = planWith(day(limited), { compute: small, nowMs: EIGHT, isAtMostReached });
    expect(plan).toMatchObject({ verdict: 'wait', heldBy: ['at_most'], untilMs: EIGHT + 30_000 });
    expect(plan.reasons.at(-1)?.message).toBe(
      '30% of the computes of office-hours were restarted within 10m, which is its limit',
    );
    expect(asked).toEqual([['office-hours', limited.atMost]]);
    expect(held(day(), { compute: small, nowMs: EIGHT, isAtMostReached })).toEqual([]);
    expect(held(day(limited), { compute: { ...small, state: 'idle' }, nowMs: EIGHT, isAtMostReached })).toEqual([]);
  });
});

it('at critical a raise waits for neither moment nor cooldown nor budget', () => {
  const policies = [
    day({ raise: { when: 'idle', deadlineMs: 0, atDeadline: 'skip' }, atMost: { share: 0.3, windowMs: 60_000 } }),
    aHeadroom({ criticalShare: 0.9, targetShare: 0.9 }),
  ];
  const scarce = (connections: number) => ({
    compute: small,
    nowMs: EIGHT + MINUTE_MS,
    record: aRecord({ lastDisruption: { atMs: EIGHT, lowered: false } }),
    connections: countsUntil(EIGHT + MINUTE_MS, connections),
    isAtOnceReached: () => true,
    isAtMostReached: () => true,
  });
  expect(planWith(policies, scarce(405))).toMatchObject({ verdict: 'act', actions: [{ raises: true }] });
  expect(planWith(policies, scarce(404)).heldBy).toEqual(['cooldown']);
});

describe('a restart', () => {
  const NOON = at('2026-03-02T12:00:00Z');
  const awake = aCompute({ startedAtMs: EIGHT - HOUR_MS });
  const restart = (options: Options, fields = {}) =>
    planWith(aRestart(fields), { nowMs: NOON, compute: awake, ...options });

  it('is made once in each opening of its window', () => {
    expect(restart({})).toMatchObject({
      verdict: 'act',
      actions: [{ kind: 'restart', fields: {}, disconnects: true, raises: false, policy: 'restart' }],
      reasons: [{ code: 'restart_due', policy: 'restart', message: 'restart: the window of restart is open' }],
    });
    expect(restart({ compute: { ...awake, startedAtMs: EIGHT - 1 } }).verdict).toBe('act');
    expect(restart({ compute: { ...awake, startedAtMs: EIGHT } }).verdict).toBe('none');
    expect(restart({ nowMs: SIX }).verdict).toBe('none');
  });

  it('is due again after every', () => {
    const startedAgo = (ms: number) =>
      restart({ compute: { ...awake, startedAtMs: NOON - ms } }, { everyMs: HOUR_MS }).verdict;
    expect([HOUR_MS - 1, HOUR_MS].map(startedAgo)).toEqual(['none', 'act']);
  });

  it('is not made of a compute that sleeps, is disabled, or started nobody knows when', () => {
    const { startedAtMs: _unknown, ...never } = awake;
    for (const compute of [{ ...awake, state: 'idle' as const }, { ...awake, disabled: true }, never]) {
      expect(restart({ compute }).verdict).toBe('none');
    }
  });

  it('waits for few connections where the policy says so, and not for sleep', () => {
    const below = { connectionsBelow: 5 };
    expect(restart({ connections: countsUntil(NOON, 4) }, below).verdict).toBe('act');
    expect(restart({ connections: countsUntil(NOON, 5) }, below)).toMatchObject({
      verdict: 'wait',
      heldBy: ['waiting_for_quiet'],
    });
    expect(restart({}, below).heldBy).toEqual(['waiting_for_quiet']);
    const skip: PartialDisruption = { lower: { when: 'idle', deadlineMs: 0, atDeadline: 'skip' } };
    expect(restart({}, { disruption: skip }).verdict).toBe('act');
  });

  it('waits for cooldown and the budget like any other', () => {
    expect(restart({ record: aRecord({ lastDisruption: { atMs: NOON, lowered: false } }) }).heldBy).toEqual([
      'cooldown',
    ]);
    expect(restart({ isAtOnceReached: () => true }).heldBy).toEqual(['at_once']);
  });

  it('is not needed beside a change that restarts the compute anyway, but beside one that waits', () => {
    const both = [aRestart(), day({ lower: { when: 'idle', atDeadline: 'apply' } })];
    const changing = planWith(both, { nowMs: NOON, compute: { ...awake, ...size(0.25, 1) } });
    expect(changing.actions.map(({ kind }) => kind)).toEqual(['update']);
    const waiting = planWith(both, { nowMs: NOON, compute: { ...awake, ...size(1, 8) } });
    expect(waiting).toMatchObject({ verdict: 'act', heldBy: ['waiting_for_idle'], actions: [{ kind: 'restart' }] });
    const timed = planWith(both, { nowMs: NOON, compute: { ...awake, ...size(1, 4), suspendTimeoutSeconds: 60 } });
    expect(timed.actions.map(({ kind }) => kind)).toEqual(['update', 'restart']);
  });

  it('is named after the policy of the highest priority, of two like the later; one that observes comes last', () => {
    const named = (...policies: Policy[]) => planWith(policies, { nowMs: NOON, compute: awake });
    const by = (name: string, fields = {}) => aRestart({ name, ...fields });
    expect(named(by('high', { priority: 1 }), by('low')).actions[0]?.policy).toBe('high');
    expect(named(by('first'), by('second')).actions[0]?.policy).toBe('second');
    const three = [by('some', { priority: 1 }), by('high', { priority: 2 }), by('low')];
    for (const policies of [three, three.toReversed()]) expect(named(...policies).actions[0]?.policy).toBe('high');
    expect(named(by('trial', { priority: 9, mode: 'observe' }), by('real')).actions[0]?.policy).toBe('real');
    expect(named(by('trial', { mode: 'observe' }))).toMatchObject({
      verdict: 'wait',
      heldBy: ['observe'],
      actions: [{ policy: 'trial' }],
    });
  });
});

describe('a new timeout alone, where it restarts an awake compute', () => {
  const never = { ...large, suspendTimeoutSeconds: -1 };
  const timeouts = aSchedule({
    windows: [{ at: [aWindow()], suspendTimeoutSeconds: -1 }],
    otherwise: { suspendTimeoutSeconds: 300 },
  });
  const restarts = { verified: { timeout_change: 'restarts' } } as const;

  it('waits as a lowering does, is counted as one that disconnects, and is free during sleep', () => {
    expect(held(timeouts, { compute: never, ...restarts })).toEqual(['waiting_for_idle', SIX + 2 * HOUR_MS]);
    expect(planWith(timeouts, { compute: never, ...restarts, nowMs: SIX + 2 * HOUR_MS })).toMatchObject({
      ...{ verdict: 'act', actions: [{ fields: { suspendTimeoutSeconds: 300 }, disconnects: true }] },
    });
    expect(planWith(timeouts, { compute: { ...never, state: 'idle' }, ...restarts })).toMatchObject({
      ...{ verdict: 'act', actions: [{ disconnects: false }] },
    });
  });

  it.each([{}, { verified: { timeout_change: 'stays' } }, { verified: { idle_resize: 'wakes' } }] as const)(
    'is made at once where that was not measured: %j',
    (also) => {
      expect(planWith(timeouts, { compute: never, ...also })).toMatchObject({ actions: [{ disconnects: false }] });
    },
  );

  it('goes with a raise that restarts the compute now, and needs no restart beside it', () => {
    const policies = [day(), aRestart()];
    const opening = {
      compute: { ...small, suspendTimeoutSeconds: 600 },
      nowMs: EIGHT,
      record: aRecord({ lastApplied: small }),
      ...restarts,
    };
    const { actions, heldBy } = planWith(policies, opening);
    expect([actions, heldBy]).toMatchObject([
      [{ kind: 'update', fields: { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 300 }, disconnects: true, raises: true }],
      [],
    ]);
    expect(actions).toHaveLength(1);
  });

  it('is no second restart within the cooldown', () => {
    const record = aRecord({
      lastApplied: small,
      lastDisruption: { atMs: SIX - MINUTE_MS, lowered: false, policy: 'x' },
    });
    const any = { lower: { when: 'any', atDeadline: 'apply' } } as const;
    expect(held({ ...timeouts, disruption: any }, { compute: never, record, ...restarts })[0]).toBe('cooldown');
    expect(held({ ...timeouts, disruption: any }, { compute: never, record })).toEqual([]);
  });
});
