import { describe, expect, it } from 'vitest';
import type { Size } from '../../src/domain/compute/compute.ts';
import { evaluate, type Situation } from '../../src/domain/evaluate/evaluate.ts';
import { comingChanges, digestOfChanges } from '../../src/domain/notifications/coming-change.ts';
import { createFuture } from '../../src/domain/notifications/future.ts';
import { aCompute, aFreeze, aGuard, aRecord, aRestart, aSchedule, at, aWindow, compiled } from '../support/builders.ts';

const MINUTE_MS = 60_000;
/** A Monday; the window of `aSchedule` ends at 18:00. */
const EVENING = at('2026-03-02T18:00:00Z');
const AT_ONCE = { lower: { when: 'any', atDeadline: 'apply' } } as const;

/** The changes of a compute within 15 minutes. */
function allComing(situation: Situation) {
  const { nowMs, compute, record = aRecord() } = situation;
  const { readyWaves } = situation.policies;
  const evaluated = { compute, record, ...evaluate(situation) };
  return comingChanges(
    evaluated,
    createFuture(() => ({ ...situation, projectBusy: false })),
    {
      ...{ nowMs, untilMs: nowMs + 15 * MINUTE_MS, readyWaves },
    },
  );
}

const firstComing = (situation: Situation) => allComing(situation)[0];

function coming(options: {
  minutesBefore: number;
  schedule?: Parameters<typeof aSchedule>[0];
  also?: Partial<Situation>;
}) {
  const compute = options.also?.compute ?? aCompute({ minCu: 1, maxCu: 4 });
  const record = aRecord({ lastApplied: { minCu: 1, maxCu: 4 } });
  const situation: Situation = {
    ...{ policies: compiled(aSchedule({ disruption: AT_ONCE, ...options.schedule })), compute, record },
    ...{ mode: 'enforce', projectBusy: false, nowMs: EVENING - options.minutesBefore * MINUTE_MS, ...options.also },
  };
  const { nowMs } = situation;
  const first = firstComing(situation);
  if (!first?.action.disconnects) return undefined;
  return digestOfChanges([first], { id: `web:${first.slotMs}`, owner: 'web', nowMs });
}

it('a message lists at most 500 changes, and counts the others', () => {
  const of = (computeId: string) =>
    firstComing({
      ...{
        policies: compiled(aSchedule({ disruption: AT_ONCE })),
        compute: aCompute({ computeId, minCu: 1, maxCu: 4 }),
      },
      ...{ record: aRecord(), mode: 'enforce', projectBusy: false, nowMs: EVENING - MINUTE_MS },
    });
  const [first, ...others] = Array.from({ length: 501 }, (_, at) => of(`ep-${at}`)).filter((one) => one !== undefined);
  if (!first) throw new Error('no change');
  const found = digestOfChanges([first, ...others], { id: 'web', owner: 'web', nowMs: EVENING - MINUTE_MS });
  expect([found.changes?.list.length, found.changes?.notListed]).toEqual([500, 1]);
});

describe('a change that is coming', () => {
  it('is told when so much time is left, with the command that holds it', () => {
    expect(coming({ minutesBefore: 16 })).toBeUndefined();
    const found = coming({ minutesBefore: 15 });
    expect(found).toMatchObject({ kind: 'change_coming', computeId: 'ep-one', policy: 'office-hours' });
    expect(found?.text).toBe(
      'ep-one will be changed from 1-4 to 0.25-1 CU at 2026-03-02T18:00:00Z, in 15m (office-hours), which disconnects its clients',
    );
    expect(found?.command).toBe("ebb hold ep-one --for 2h --reason 'not now' --freeze");
    expect(coming({ minutesBefore: 3 })?.id).toBe(found?.id);
  });

  it('is not told sooner because its boundary lies within a quarter of an hour', () => {
    const [window] = aSchedule().windows;
    const until = [aWindow({ startMinute: 9 * 60, endMinute: 18 * 60 + 7 })];
    const schedule = { windows: window ? [{ ...window, at: until }] : [] };
    expect(coming({ minutesBefore: 9, schedule })).toBeUndefined();
    expect(coming({ minutesBefore: 8, schedule })?.policy).toBe('office-hours');
  });

  it('is told with the lead that is left', () => {
    expect(coming({ minutesBefore: 3 })?.text).toContain('at 2026-03-02T18:00:00Z, in 3m (');
    expect(coming({ minutesBefore: 1 / 2 })?.text).toContain(', in 30s (');
  });

  it.each(['isAtOnceReached', 'isAtMostReached'] as const)(
    'is told for its boundary though %s, and not again for each try',
    (full) => {
      const schedule = { disruption: { ...AT_ONCE, atMost: { share: 0.1, windowMs: 60 * MINUTE_MS } } } as const;
      const also = { [full]: () => true };
      expect(coming({ minutesBefore: 15, schedule, also })?.text).toContain('at 2026-03-02T18:00:00Z');
      expect(coming({ minutesBefore: -1, schedule, also })).toBeUndefined();
    },
  );

  it.each([
    ['has failed once', { count: 1, lastAtMs: EVENING + 50_000 }, 1],
    ['keeps failing', { count: 3, lastAtMs: EVENING }, 50],
  ])('is not told again for each try if it %s', (_, failed, minutes) => {
    const desired = { minCu: 0.25, maxCu: 1 };
    const failures = { size: { ...failed, desired, message: 'no room' } };
    const record = aRecord({ lastApplied: { minCu: 1, maxCu: 4 }, failures });
    const also = { nowMs: EVENING + minutes * MINUTE_MS, record };
    const situation = { policies: compiled(aSchedule({ disruption: AT_ONCE, otherwise: { size: desired } })), ...also };
    const compute = aCompute({ minCu: 1, maxCu: 4 });
    const waits = evaluate({ ...situation, compute, mode: 'enforce', projectBusy: false }).plan;
    // The next try is less than 15 minutes away.
    expect([waits.verdict, Math.ceil(((waits.untilMs ?? 0) - also.nowMs) / (15 * MINUTE_MS))]).toEqual(['wait', 1]);
    const schedule = { otherwise: { size: desired } };
    expect(coming({ minutesBefore: -minutes, schedule, also: { record } })).toBeUndefined();
  });

  it('is not told again for the end of the time in which a change without an answer may take effect', () => {
    const intent = { fields: { minCu: 0.25, maxCu: 1 }, atMs: EVENING + 50_000 };
    const record = aRecord({ lastApplied: { minCu: 1, maxCu: 4 }, intent });
    expect(coming({ minutesBefore: -1, also: { record } })).toBeUndefined();
  });

  it('is not told of a timeout that is written now, though its size waits for a newer reading', () => {
    const situation: Situation = {
      ...{ policies: compiled(aSchedule({ disruption: AT_ONCE })), nowMs: EVENING + MINUTE_MS },
      compute: aCompute({ minCu: 1, maxCu: 4, suspendTimeoutSeconds: 60 }),
      record: aRecord({ lastApplied: { minCu: 1, maxCu: 4 }, lagging: { size: true } }),
      ...{ mode: 'enforce', projectBusy: false },
    };
    expect(evaluate(situation).plan).toMatchObject({ verdict: 'act', waiting: [{ gate: { code: 'reading_lags' } }] });
    expect(allComing(situation)).toEqual([]);
  });

  it('is told while a change has no answer yet, as it is after it', () => {
    const intent = { fields: { suspendTimeoutSeconds: 300 }, atMs: EVENING - 15 * MINUTE_MS };
    const record = aRecord({ lastApplied: { minCu: 1, maxCu: 4 }, intent });
    expect(coming({ minutesBefore: 15, also: { record } })?.computeId).toBe('ep-one');
  });

  it('is told of what waits for sleep, before its deadline', () => {
    const schedule = {
      disruption: { lower: { when: 'idle', deadlineMs: 60 * MINUTE_MS, atDeadline: 'apply' } },
    } as const;
    expect(coming({ minutesBefore: 10, schedule })).toBeUndefined();
    expect(coming({ minutesBefore: -44, schedule })).toBeUndefined();
    expect(coming({ minutesBefore: -45, schedule })?.text).toContain('at 2026-03-02T19:00:00Z');
  });

  it('is told while an operation of the compute runs, as it is after it', () => {
    const compute = aCompute({ minCu: 1, maxCu: 4, state: 'idle', pendingState: 'active' });
    const operation = { operationId: 'op-1', action: 'start_compute', startedAtMs: 0 };
    const record = aRecord({ lastApplied: { minCu: 1, maxCu: 4 }, openOperations: [operation] });
    expect(coming({ minutesBefore: 15, also: { compute, record } })?.computeId).toBe('ep-one');
    const sleeps = aCompute({ minCu: 1, maxCu: 4, pendingState: 'idle' });
    expect(coming({ minutesBefore: 15, also: { compute: sleeps } })).toBeUndefined();
    // It is listed, as one that sleeps.
    const policies = compiled(aSchedule({ disruption: AT_ONCE }));
    const nowMs = EVENING - 15 * MINUTE_MS;
    const listed = firstComing({
      ...{ policies, compute: sleeps, record: aRecord(), mode: 'enforce', projectBusy: false, nowMs },
    });
    expect(listed?.action.disconnects).toBe(false);
  });

  it('is told behind boundaries that change no size: a restart window that opens and closes, and another timeout', () => {
    const twoMinutes = (before: number) => aWindow({ startMinute: 18 * 60 - before, endMinute: 18 * 60 - before + 2 });
    const told = (...also: Parameters<typeof compiled>) =>
      allComing({
        ...{ policies: compiled(aSchedule({ disruption: AT_ONCE }), ...also), record: aRecord() },
        compute: aCompute({ minCu: 1, maxCu: 4, startedAtMs: EVENING - 60 * MINUTE_MS }),
        ...{ mode: 'enforce', projectBusy: false, nowMs: EVENING - 15 * MINUTE_MS },
      }).map(({ action: { kind, disconnects }, instantMs, slotMs }) => [
        ...[kind, disconnects, (instantMs - EVENING) / MINUTE_MS, slotMs === instantMs],
      ]);
    const evening = ['update', true, 0, true];
    const restart = aRestart({ at: [twoMinutes(8)], everyMs: 24 * 60 * MINUTE_MS });
    expect(told(restart)).toEqual([evening]);
    const windows = [{ at: [twoMinutes(12)], suspendTimeoutSeconds: 3_600 }];
    const timeout = aSchedule({ name: 'longer', priority: 1, disruption: AT_ONCE, windows, otherwise: {} });
    expect(told(restart, timeout)).toEqual([['update', false, -12, true], evening]);
    // A restart that is due in the window comes first, and the next one after its cooldown.
    expect(told(aRestart({ at: [twoMinutes(8)] }))).toEqual([
      ['restart', true, -8, true],
      ['update', true, 2, false],
    ]);
  });

  it('is told as early behind another change of its compute, as if that had been made', () => {
    const hours = (from: number, to: number, size: Size) => ({
      at: [aWindow({ startMinute: 18 * 60 + from, endMinute: 18 * 60 + to })],
      size,
    });
    const [large, small] = [
      { minCu: 1, maxCu: 4 },
      { minCu: 2, maxCu: 2 },
    ];
    const windows = [hours(-60, 0, large), hours(0, 6, small), hours(6, 9, large)];
    const told = (minutesBefore: number, cooldownMs: number, also: Partial<Situation> = {}) =>
      allComing({
        policies: compiled(aSchedule({ windows, disruption: { ...AT_ONCE, cooldownMs } })),
        ...{ compute: aCompute({ minCu: 1, maxCu: 4 }), record: aRecord({ lastApplied: { minCu: 1, maxCu: 4 } }) },
        ...{ mode: 'enforce', projectBusy: false, nowMs: EVENING - minutesBefore * MINUTE_MS, ...also },
      }).map(({ compute: { maxCu }, action, instantMs, slotMs }) => [
        ...[`${maxCu} → ${action.fields.maxCu}`, (instantMs - EVENING) / MINUTE_MS, (slotMs - EVENING) / MINUTE_MS],
      ]);
    const [first, second, third] = [
      ['4 → 2', 0, 0],
      ['2 → 4', 6, 6],
      ['4 → 1', 9, 9],
    ];
    expect(told(10, 0)).toEqual([first]);
    expect(told(9, 0)).toEqual([first, second]);
    expect(told(6, 0)).toEqual([first, second, third]);
    expect(told(6, 0, { compute: aCompute({ minCu: 1, maxCu: 4, state: 'idle' }) })).toEqual([first, second, third]);
    // A raise does not wait for the cooldown after a lowering; the lowering after it does, in a slot of its own.
    expect(told(-1, 5 * MINUTE_MS, { compute: aCompute({ minCu: 2, maxCu: 2 }) })).toEqual([second, ['4 → 1', 11, 0]]);
  });

  it('is told for the deadline of a lowering that another change of its compute precedes', () => {
    const hours = (from: number, to: number, maxCu: number) => ({
      at: [aWindow({ startMinute: 18 * 60 + from, endMinute: 18 * 60 + to })],
      size: { minCu: 1, maxCu },
    });
    const small = { minCu: 1, maxCu: 1 };
    const disruption = {
      cooldownMs: 0,
      raise: { when: 'any', atDeadline: 'apply' },
      lower: { when: 'idle', deadlineMs: 5 * MINUTE_MS, atDeadline: 'apply' },
    } as const;
    const record = aRecord({
      lastApplied: small,
      wanted: { size: { fields: small, sinceMs: EVENING - 60 * MINUTE_MS } },
    });
    const changes = allComing({
      policies: compiled(aSchedule({ windows: [hours(-60, 5, 1), hours(5, 12, 4), hours(12, 60, 2)], disruption })),
      ...{ compute: aCompute(small), record, mode: 'enforce', projectBusy: false, nowMs: EVENING + MINUTE_MS },
    });
    expect(changes.map(({ instantMs }) => (instantMs - EVENING) / MINUTE_MS)).toEqual([5, 17]);
  });

  it('is told for the end of a cooldown that is not over at its boundary', () => {
    const lastDisruption = { atMs: EVENING - 7 * MINUTE_MS, lowered: false, policy: 'office-hours' };
    const record = aRecord({ lastApplied: { minCu: 1, maxCu: 4 }, lastDisruption });
    const schedule = { disruption: { ...AT_ONCE, cooldownMs: 10 * MINUTE_MS } };
    const found = coming({ minutesBefore: 6, schedule, also: { record } });
    expect(found?.text).toContain('at 2026-03-02T18:03:00Z, in 9m (office-hours), which disconnects its clients');
  });

  it('is not told of a restart that was sent, although no reading shows it yet', () => {
    const inWindow = EVENING - 60 * MINUTE_MS;
    const restart = aRestart({ at: [aWindow({ startMinute: 16 * 60 + 55, endMinute: 17 * 60 + 20 })] });
    const compute = aCompute({ startedAtMs: inWindow - 24 * 60 * MINUTE_MS });
    const lastDisruption = { atMs: inWindow, lowered: false, policy: 'restart' };
    const told = (record: ReturnType<typeof aRecord>) =>
      allComing({
        ...{ policies: compiled(restart), record, compute, disruption: { cooldownMs: 10 * MINUTE_MS } },
        ...{ mode: 'enforce', projectBusy: false, nowMs: inWindow + 2_000 },
      } as Situation);
    expect(told(aRecord({ lastDisruption }))).toEqual([]);
    expect(told(aRecord({ lastDisruption: { ...lastDisruption, atMs: inWindow - 12 * 60 * MINUTE_MS } }))).toEqual([]);
  });

  it('in a later wave is told with the first wave, also while another change waits for sleep', () => {
    const opensAtMs = EVENING + 15 * MINUTE_MS;
    const wave = (leadMs: number) => ({ leadMs, computes: 1, last: { priority: 0, part: 1 } });
    const compute = aCompute({ minCu: 1, maxCu: 4 });
    const waves = [wave(30_000), wave(15_000)];
    const readyWaves = [{ account: compute.account, opensAtMs, setHash: 'h', waves }];
    const policies = compiled(aSchedule({ disruption: AT_ONCE }));
    const record = aRecord();
    const situation: Situation = { policies, compute, record, mode: 'enforce', projectBusy: false, nowMs: EVENING };
    const waiting = { ...evaluate(situation), nextBoundaryMs: opensAtMs - 15_000, nextChangeMs: undefined };
    const found = (untilMs: number) =>
      comingChanges(
        { compute, record, ...waiting, plan: { ...waiting.plan, verdict: 'wait' } as never },
        { ...createFuture(() => situation), plan: () => waiting.plan, boundaryAfter: () => undefined },
        { nowMs: EVENING, untilMs, readyWaves },
      ).map(({ instantMs, slotMs }) => [opensAtMs - instantMs, opensAtMs - slotMs]);
    expect(found(opensAtMs - 30_000)).toEqual([[15_000, 30_000]]);
    expect(found(opensAtMs - 31_000)).toEqual([]);
  });

  it('is told although a guard may still hold it back', () => {
    const policies = compiled(aSchedule({ disruption: AT_ONCE }), aGuard());
    expect(coming({ minutesBefore: 15, also: { policies } })?.policy).toBe('office-hours');
  });

  it('is not told where nobody will be disconnected', () => {
    const skipped = {
      disruption: { lower: { when: 'idle', deadlineMs: 60 * MINUTE_MS, atDeadline: 'skip' } },
    } as const;
    expect(coming({ minutesBefore: -50, schedule: skipped })).toBeUndefined();
    expect(
      coming({ minutesBefore: 5, also: { compute: aCompute({ minCu: 1, maxCu: 4, state: 'idle' }) } }),
    ).toBeUndefined();
    expect(coming({ minutesBefore: 5, also: { mode: 'observe' } })).toBeUndefined();
    const hold = { id: 'h', owner: 'ann', reason: 'r', createdAtMs: 0, projectId: 'p-one', computeId: 'ep-one' };
    const held = { holds: [{ ...hold, freeze: true as const, expiresAtMs: EVENING + 60 * MINUTE_MS }] };
    expect(coming({ minutesBefore: 5, also: held })).toBeUndefined();
  });

  /** The lowering of six o'clock waits for sleep until seven. */
  const SEVEN = EVENING + 60 * MINUTE_MS;
  const untilSeven = {
    disruption: {
      lower: { when: 'idle', deadlineMs: 60 * MINUTE_MS, atDeadline: 'apply' },
      cooldownMs: 60 * MINUTE_MS,
    },
  } as const;
  const kept = { id: 'x', owner: 'ann', reason: 'r', createdAtMs: 0, expiresAtMs: SEVEN - 8_000 };
  const lastApplied = { minCu: 1, maxCu: 4 };
  const restarted = { atMs: EVENING - 8_000, lowered: true };
  const desired = { minCu: 0.25, maxCu: 1 };
  const failed = { count: 3, lastAtMs: EVENING - 8_000, desired, message: 'no room' };
  const operation = { operationId: 'op-1', action: 'start_compute', startedAtMs: 0 };
  it.each<[string, Partial<Situation>]>([
    ['a cooldown', { record: aRecord({ lastApplied, lastDisruption: restarted }) }],
    ["somebody's freeze", { freezes: [{ ...kept, select: 'all', allowRaise: false }] }],
    ['a hold', { holds: [{ ...kept, projectId: 'p-one', computeId: 'ep-one', freeze: true }] }],
    [
      'a freeze by a policy',
      {
        policies: compiled(
          aSchedule(untilSeven),
          aFreeze({ at: [{ kind: 'interval', startMs: 0, endMs: SEVEN - 8_000 }] }),
        ),
      },
    ],
    [
      'a manual change',
      {
        record: aRecord({
          lastApplied,
          manual: { size: { seenAtMs: EVENING - 8_000, fields: lastApplied, raises: false } },
        }),
      },
    ],
    ['the pause after failures', { record: aRecord({ lastApplied, failures: { size: failed } }) }],
    ['an operation of the compute', { record: aRecord({ lastApplied, openOperations: [operation] }) }],
    ['an operation of the project', { projectBusy: true }],
  ])('is told before its deadline though %s holds it back now, and ends just before it', (_, also) => {
    const schedule = { ...untilSeven, manualChanges: { kind: 'respect-for', forMs: 60 * MINUTE_MS } } as const;
    const text = 'ep-one will be changed from 1-4 to 0.25-1 CU at 2026-03-02T19:00:00Z, in 14m';
    expect(coming({ minutesBefore: -46, schedule, also })?.text).toContain(text);
  });

  it('is told before its deadline though another change fails', () => {
    const failures = { suspend_timeout: { ...failed, desired: { suspendTimeoutSeconds: 300 } } };
    const compute = aCompute({ minCu: 1, maxCu: 4, suspendTimeoutSeconds: 60 });
    const also = { compute, record: aRecord({ lastApplied, failures }) };
    expect(coming({ minutesBefore: -46, schedule: untilSeven, also })?.text).toContain('at 2026-03-02T19:00:00Z');
  });

  it('is told for the end of what keeps the compute as it is at the boundary', () => {
    const kept = { id: 'x', owner: 'ann', reason: 'r', createdAtMs: 0, expiresAtMs: EVENING + 5 * MINUTE_MS };
    const ends = 'at 2026-03-02T18:05:00Z, in 10m (office-hours)';
    const hold = { ...kept, projectId: 'p-one', computeId: 'ep-one', freeze: true as const };
    expect(coming({ minutesBefore: 5, also: { holds: [hold] } })?.text).toContain(ends);
    const freeze = { ...kept, select: 'all' as const, allowRaise: false };
    expect(coming({ minutesBefore: 5, also: { freezes: [freeze] } })?.text).toContain(ends);
  });
});
