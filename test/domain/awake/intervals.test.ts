import { describe, expect, it } from 'vitest';
import { type AwakeHistory, awakeHistory, awakeShare, historyFrom } from '../../../src/domain/awake/intervals.ts';
import type { ComputeEvent } from '../../../src/domain/awake/operation-log.ts';

const DAY = Date.parse('2026-03-02T00:00:00Z');
const at = (minute: number) => DAY + minute * 60_000;
const start = (minute: number, rest: Partial<ComputeEvent> = {}): ComputeEvent => ({
  ...{ atMs: at(minute), effect: 'start', result: 'done', durationMs: 1000 },
  ...rest,
});
const suspend = (minute: number, rest: Partial<ComputeEvent> = {}) => start(minute, { effect: 'suspend', ...rest });
const other = (minute: number, effect: ComputeEvent['effect'] = 'other') => start(minute, { effect });
const history = (events: ComputeEvent[], present?: Parameters<typeof awakeHistory>[1]['present']) =>
  awakeHistory(events, { fromMs: at(0), toMs: at(100), present });
const shown = ({ intervals, unknown }: AwakeHistory) => ({
  awake: intervals.map(({ startMs, endMs, start, end }) => [(startMs - DAY) / 6e4, (endMs - DAY) / 6e4, start, end]),
  unknown: unknown.map(({ fromMs, toMs }) => [(fromMs - DAY) / 6e4, (toMs - DAY) / 6e4]),
});
const created = { createdAtMs: at(-1000) };

describe('awake intervals', () => {
  it('last from a start to the suspend after it, and an open one to the end of what is known', () => {
    expect(shown(history([start(10), suspend(20), start(50)]))).toEqual({
      awake: [
        [10, 20, 'client', 'timeout'],
        [50, 100, 'client', 'open'],
      ],
      unknown: [],
    });
  });

  it('are unknown before a suspend that is the first operation, since the log is cut there', () => {
    expect(shown(history([suspend(20), start(30), suspend(40)]))).toEqual({
      awake: [[30, 40, 'client', 'timeout']],
      unknown: [[0, 20]],
    });
  });

  it('end with what is known, where the API’s clock is ahead of the reader’s', () => {
    const present = { ...created, state: 'active' } as const;
    const ahead = [
      { events: [start(10), suspend(20), start(150)], awake: [[10, 20, 'client', 'timeout']], share: 0.1 },
      { events: [start(10), suspend(150), start(160)], awake: [[10, 100, 'client', 'open']], share: 0.9 },
      { events: [start(150)], awake: [], share: 0 },
      { events: [suspend(150), start(160)], awake: [[0, 100, 'unknown', 'open']], share: 1 },
    ];
    for (const { events, awake, share } of ahead) {
      const read = history(events, present);
      expect({ ...shown(read), share: awakeShare(read) }).toEqual({ awake, unknown: [], share });
    }
  });

  it('go on where a suspend failed or was skipped, and do not begin where a start failed', () => {
    expect(
      shown(history([start(5, { result: 'failed' }), start(10), suspend(20, { result: 'failed' }), suspend(40)])).awake,
    ).toEqual([[10, 40, 'client', 'timeout']]);
    expect(shown(history([start(10), suspend(20, { result: 'none' })])).awake).toEqual([[10, 100, 'client', 'open']]);
  });

  it('begin by a client where what looks like a restart comes many times a day', () => {
    // A start each 55 minutes, a second after the suspend.
    const restarts = (many: number, extra: (minute: number) => ComputeEvent[] = () => []) => {
      const minutes = Array.from({ length: many }, (_, index) => 55 * (index + 1));
      const events = minutes.flatMap((minute) => [...extra(minute), suspend(minute), start(minute + 1 / 60)]);
      const toMs = at(55 * (many + 1));
      return awakeHistory([start(0), ...events], { fromMs: at(0), toMs }).intervals;
    };
    const [first, second] = restarts(40);
    expect([first?.end, second?.start, second?.end]).toEqual(['timeout', 'client', 'timeout']);
    // A few are restarts, as are those before which settings were changed.
    for (const [one, two] of [restarts(15), restarts(40, (minute) => [other(minute - 0.1)])])
      expect([one?.end, two?.start]).toEqual(['operation', 'restart']);
  });

  it('are unknown between two starts, and between two suspends', () => {
    expect(shown(history([start(10), start(30), suspend(40), suspend(60)]))).toEqual({
      awake: [[30, 40, 'client', 'timeout']],
      unknown: [
        [10, 30],
        [40, 60],
      ],
    });
  });

  it('do not end by the timeout where another operation is near', () => {
    const ends = (extra: ComputeEvent[]) =>
      history([start(10), suspend(20), ...extra].toSorted((a, b) => a.atMs - b.atMs)).intervals[0]?.end;
    expect(ends([])).toBe('timeout');
    expect(ends([other(19.5)])).toBe('operation');
    expect(ends([other(20.9)])).toBe('operation');
    expect(ends([other(18.9)])).toBe('timeout');
    expect(ends([suspend(19.9, { result: 'failed' })])).toBe('operation');
    // The client that comes half a minute after the compute fell asleep has not caused its sleep.
    expect(ends([start(20.5)])).toBe('timeout');
    expect(history([start(10), suspend(11)]).intervals[0]?.end).toBe('timeout');
  });

  it('tell a start by a restart, or by an availability check, from one by a client', () => {
    const second = (extra: ComputeEvent[]) => history([start(10), suspend(20), ...extra]).intervals[1]?.start;
    expect(second([start(20)])).toBe('restart');
    expect(second([other(39.5, 'check'), start(40)])).toBe('check');
    expect(second([start(40), other(40.5, 'check')])).toBe('check');
    expect(second([other(38, 'check'), start(40)])).toBe('client');
  });

  it('without operations are what the compute is now, and unknown where it is gone', () => {
    expect(shown(history([], { state: 'active', ...created })).awake).toEqual([[0, 100, 'unknown', 'open']]);
    expect(awakeShare(history([], { state: 'idle', ...created }))).toBe(0);
    expect(shown(history([])).unknown).toEqual([[0, 100]]);
    expect(awakeShare(history([]))).toBeUndefined();
  });

  it('are a share of the time that is known and in which the compute existed', () => {
    expect(awakeShare(history([suspend(20), start(30), suspend(40)]))).toBeCloseTo(10 / 80);
    const young = history([start(60), suspend(80)], { state: 'idle', createdAtMs: at(60) });
    expect(awakeShare(young)).toBeCloseTo(20 / 40);
    expect(awakeShare(historyFrom(history([start(10), suspend(30)]), at(20)))).toBeCloseTo(10 / 80);
  });
});
