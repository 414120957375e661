import { describe, expect, it } from 'vitest';
import { type BacktestInput, backtest } from '../../../src/domain/backtest/backtest.ts';
import { measure } from '../../../src/domain/backtest/measure.ts';
import { countIntervalMs, type Recording, recordingEndMs, replay } from '../../../src/domain/backtest/replay.ts';
import type { Size } from '../../../src/domain/compute/compute.ts';
import { CONNECTION_PROFILES } from '../../../src/domain/connections/connection-profile.ts';
import type { HeadroomPolicy } from '../../../src/domain/policy/kinds/headroom.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import { aBudget, aCompute, aHeadroom, aSchedule, aStepSpan, at, aWindow, compiled } from '../../support/builders.ts';

const START = at('2026-03-02T00:00:00Z');
const MINUTE_MS = 60_000;
const AT_ONCE = { lower: { when: 'any', atDeadline: 'apply' }, cooldownMs: 0 } as const;
const size = (minCu: number, maxCu = minCu): Size => ({ minCu, maxCu });

/** One count for each minute: so many minutes of so many connections, one stretch after the other; `null` is a gap. */
function recordingOf(stretches: readonly [minutes: number, connections: number | null][], has = size(0.25)): Recording {
  const perMinute = stretches.flatMap(([minutes, connections]) => Array<number | null>(minutes).fill(connections));
  const counts = perMinute.flatMap((connections, minute) =>
    connections === null ? [] : [{ atMs: START + minute * MINUTE_MS, connections }],
  );
  const compute = aCompute({ ...has, suspendTimeoutSeconds: 300 });
  const baseline = { ...size(0.25), suspendTimeoutSeconds: 300 };
  return { compute, baseline, profile: CONNECTION_PROFILES.specification, counts };
}

const room = (fields: Partial<HeadroomPolicy> = {}) => aHeadroom({ name: 'room', disruption: AT_ONCE, ...fields });

/** Changes as text, with the minute in which they are made. */
function changesOf(recording: Recording, ...policies: Policy[]): string[] {
  const { changes } = replay(recording, { policies: compiled(...policies) });
  return changes.map(({ atMs, before, after, dropped }) => {
    const minute = (atMs - START) / MINUTE_MS;
    return `${minute}: ${before.maxCu} → ${after.maxCu}, ${dropped} dropped`;
  });
}

const figuresOf = (recording: Recording, policy: HeadroomPolicy) =>
  measure(replay(recording, { policies: compiled(policy) }), policy.targetShare);

describe('a replay', () => {
  // At 0.25 CU 112 connections, at 0.5 CU 225; 80 % of them may be used, and 30 minutes must agree before it goes back.
  const hourOfMany = recordingOf([
    [60, 10],
    [60, 100],
    [120, 10],
  ]);

  it('raises at the first count that needs it, and goes back when the last one has left the window', () => {
    // 100 / 0.8 is 125. The last 100 is counted in minute 119 and leaves the window after minute 149.
    expect(changesOf(hourOfMany, room())).toEqual(['60: 0.25 → 0.5, 100 dropped', '150: 0.5 → 0.25, 10 dropped']);
    expect(figuresOf(hourOfMany, room())).toEqual({
      ...{ raises: 1, lowers: 1, restarts: 2, dropped: 110 },
      ...{ minutesAboveTarget: 0, minutesRefusing: 0, refused: 0, minutesUnknown: 0 },
      // 4 h of 0.25 at least; at most 1 h of 0.25, 1.5 h of 0.5 and 1.5 h of 0.25.
      cuHours: { low: 1, high: 1.375 },
    });
  });

  it('waits for its moment to lower as a daemon does', () => {
    const day = recordingOf([
      [60, 10],
      [60, 100],
      [300, 10],
    ]);
    // Wanted from minute 150 on; nobody leaves, so it waits for sleep for two hours.
    expect(changesOf(day, aHeadroom())).toEqual(['60: 0.25 → 0.5, 100 dropped', '270: 0.5 → 0.25, 10 dropped']);
  });

  it('waits between two raises, unless it is critical', () => {
    const growing = recordingOf([
      [5, 100],
      [15, 200],
    ]);
    const usual = room({ disruption: { ...AT_ONCE, cooldownMs: 10 * MINUTE_MS } });
    // 200 of 225 are 88.9 %.
    expect(changesOf(growing, usual)).toEqual(['0: 0.25 → 0.5, 100 dropped', '10: 0.5 → 1, 200 dropped']);
    expect(changesOf(growing, { ...usual, criticalShare: 0.88 })).toEqual([
      '0: 0.25 → 0.5, 100 dropped',
      '5: 0.5 → 1, 200 dropped',
    ]);
  });

  it('counts those who found no place once, and as long as there was none', () => {
    const crowd = recordingOf([
      [5, 10],
      [10, 150],
      [5, 160],
      [5, 10],
    ]);
    // 112 are seen of 150, which need 140: 0.5 CU has room for all.
    expect(changesOf(crowd, room())).toEqual(['5: 0.25 → 0.5, 112 dropped']);
    expect(figuresOf(crowd, room())).toMatchObject({ refused: 38, minutesRefusing: 0 });
    const stuck = figuresOf(crowd, room({ maxCu: 0.25 }));
    expect(stuck).toMatchObject({ refused: 48, minutesRefusing: 15, minutesAboveTarget: 15, raises: 0 });
  });

  it('counts again the clients that find no place after a raise has made room for the earlier ones', () => {
    const growing = recordingOf([
      [1, 150],
      [5, 330],
    ]);
    // 38 of 150 at 0.25 CU, all of whom find a place at 0.5 CU; then 105 of 330 at 0.5 CU.
    expect(changesOf(growing, room())).toEqual(['0: 0.25 → 0.5, 112 dropped', '1: 0.5 → 1, 225 dropped']);
    expect(figuresOf(growing, room()).refused).toBe(143);
  });

  it('counts those once who found no place before a gap', () => {
    const gap = recordingOf([
      [5, 150],
      [60, null],
      [5, 150],
    ]);
    expect(figuresOf(gap, room({ maxCu: 0.25 })).refused).toBe(38);
  });

  it('remembers a window of many counts that are far apart', () => {
    const everyTenMinutes = Array.from({ length: 6 * 30 }, (_, n) => ({
      ...{ atMs: START + n * 10 * MINUTE_MS, connections: n === 6 ? 100 : 10 },
    }));
    const recording = { ...recordingOf([]), counts: everyTenMinutes };
    // The peak of minute 60 leaves a window of 12 hours, and the stretch of time that it stands for, within the hour after.
    const [raise, lower, ...others] = changesOf(recording, room({ scaleDownAfterMs: 12 * 60 * MINUTE_MS }));
    expect([raise, others]).toEqual(['60: 0.25 → 0.5, 100 dropped', []]);
    const minute = Number.parseInt(lower ?? '', 10);
    expect(minute).toBeGreaterThan(60 + 12 * 60);
    expect(minute).toBeLessThanOrEqual(60 + 13 * 60);
  });

  it('lets a compute sleep after its timeout, and then lowers it without disturbing anybody', () => {
    const quiet = recordingOf(
      [
        [10, 5],
        [50, 0],
        [5, 7],
      ],
      size(0.5),
    );
    expect(changesOf(quiet, aHeadroom())).toEqual(['15: 0.5 → 0.25, 0 dropped']);
    // Awake for 15 minutes at 0.5 CU and 5 at 0.25.
    const { cuHours, restarts } = figuresOf(quiet, aHeadroom());
    expect(restarts).toBe(0);
    expect(cuHours.low).toBeCloseTo(0.125 + 0.25 / 12);
  });

  it('lowers nothing while nothing is known, whatever a schedule wants', () => {
    const evening = aSchedule({
      name: 'evening',
      windows: [
        {
          at: [{ kind: 'interval', startMs: START + 60 * MINUTE_MS, endMs: START + 999 * MINUTE_MS }],
          size: size(0.25),
        },
      ],
      otherwise: 'leave',
      disruption: AT_ONCE,
    });
    const has = size(0.5);
    const whole = recordingOf([[120, 10]], has);
    expect(changesOf(whole, room(), { ...evening, otherwise: { size: has } })).toEqual(['60: 0.5 → 0.25, 10 dropped']);
    const gap = recordingOf(
      [
        [30, 10],
        [60, null],
        [30, 10],
      ],
      has,
    );
    // From minute 115 on the window of 30 minutes is known but for the five that a count may be late.
    const late = ['115: 0.5 → 0.25, 10 dropped'];
    expect(changesOf(gap, room(), { ...evening, otherwise: { size: has } })).toEqual(late);
    // The count of minute 29 holds for five minutes.
    expect(figuresOf(gap, room()).minutesUnknown).toBe(56);
  });

  it('holds counts longer where they are further apart', () => {
    const hours = {
      ...recordingOf([]),
      counts: [0, 1, 2, 3].map((hour) => ({ atMs: START + hour * 3_600_000, connections: 10 })),
    };
    expect([countIntervalMs(hours), recordingEndMs(hours)]).toEqual([3_600_000, START + 4 * 3_600_000]);
    expect(figuresOf(hours, room()).minutesUnknown).toBe(0);
    expect(countIntervalMs({ ...hours, counts: hours.counts.slice(0, 1) })).toBe(MINUTE_MS);
  });

  it('knows nothing between two counts that are far apart, or for longer than a source may wait', () => {
    const apart = (...days: number[]) => ({
      ...recordingOf([]),
      counts: days.map((day) => ({ atMs: START + day * 24 * 60 * MINUTE_MS, connections: 10 })),
    });
    // Five minutes after the first count are known, and one after the last.
    expect(figuresOf(apart(0, 1), room()).minutesUnknown).toBe(24 * 60 - 5);
    expect(countIntervalMs(apart(0, 100, 200))).toBe(24 * 60 * MINUTE_MS);
  });
});

describe('a backtest', () => {
  const recordings = [
    recordingOf([
      [60, 10],
      [60, 100],
      [120, 10],
    ]),
  ];
  const policy = room({ mode: 'observe', act: 'advise' });
  const set = { policies: [policy], sources: new Map(), hash: 'test' };

  it('tells the policy as written, as if it enforced, from other numbers and from none', () => {
    const {
      asWritten,
      alternatives,
      withoutPolicy: without,
      computes,
    } = backtest({
      ...{ policies: set, policy, recordings },
      variants: [
        { targetShare: 0.9, windowMs: 30 * MINUTE_MS },
        { targetShare: 0.8, windowMs: 60 * MINUTE_MS },
      ],
    });
    expect(asWritten).toMatchObject({ targetShare: 0.8, windowMs: 30 * MINUTE_MS, figures: { raises: 1, lowers: 1 } });
    // 100 of 112 are 89.3 %: under 90 % nothing has to be done.
    expect(alternatives[0]?.figures).toMatchObject({
      raises: 0,
      restarts: 0,
      minutesAboveTarget: 0,
      cuHours: { high: 1 },
    });
    // Back after minute 179: 1 h of 0.25, 2 h of 0.5, 1 h of 0.25.
    expect(alternatives[1]?.figures).toMatchObject({ raises: 1, lowers: 1, cuHours: { high: 1.5 } });
    expect(without).toMatchObject({ restarts: 0, minutesAboveTarget: 60, refused: 0, cuHours: { low: 1, high: 1 } });
    expect(computes.map(({ changes }) => changes.length)).toEqual([2]);
  });

  it('follows what a leader has decided: waves of windows that are ready, and steps of budgets', () => {
    const window = { at: [aWindow({ startMinute: 60, endMinute: 120 })], size: size(1), readyLeadMs: 3 * MINUTE_MS };
    const morning = aSchedule({
      ...{ windows: [{ ...window, readyInWaves: true }], otherwise: { size: size(0.25) }, disruption: AT_ONCE },
    });
    const policies = { ...set, policies: [policy, morning] };
    const quiet = [recordingOf([[180, 10]])];
    const timesWith = (decided: BacktestInput['knownDecisions']) =>
      backtest({ policies, policy, recordings: quiet, variants: [], knownDecisions: decided }).computes[0]?.changes.map(
        ({ atMs, after }) => [(atMs - START) / MINUTE_MS, after.maxCu],
      );
    const waves = [{ leadMs: 10 * MINUTE_MS, computes: 1, last: { priority: 0, part: 1 } }];
    const opensAtMs = START + 60 * MINUTE_MS;
    const readyWaves = [{ account: 'default', opensAtMs, setHash: 'test', waves }];
    expect(timesWith(undefined)).toEqual([
      [57, 1],
      [120, 0.25],
    ]);
    expect(timesWith({ budgetSteps: [], readyWaves })?.[0]).toEqual([50, 1]);
    const limiting = aBudget({ steps: [{ at: 1, of: 'spent', notify: [], limits: { size: { low: 0, high: 0.5 } } }] });
    const limited = { ...set, policies: [policy, morning, limiting] };
    const span = aStepSpan({ fromMs: START, untilMs: START + 24 * 60 * MINUTE_MS });
    const decided = { budgetSteps: [span], readyWaves: [] };
    const [first] = backtest({
      policies: limited,
      policy,
      recordings: quiet,
      variants: [],
      knownDecisions: decided,
    }).computes;
    expect(first?.changes.map(({ after }) => after.maxCu)).toEqual([0.5, 0.25]);
  });
});
