import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type JudgedCompute,
  NOTHING_WATCHED,
  type WatchEvent,
  type WatchMemory,
  watchRound,
} from '../../../src/domain/guards/watch.ts';
import { at } from '../../support/builders.ts';

const SIX = at('2026-03-02T18:00:00Z');
const TERMS = { forMs: 180_000, watchMs: 1_800_000, settleMs: 120_000 };
const ROUND_MS = 30_000;
const minutes = (count: number) => count * 60_000;

type StateAt = (ms: number) => JudgedCompute['state'];
interface Subject {
  loweredAtMs?: number;
  startedAtMs?: number;
  state: StateAt;
}

/** Rounds of 30 s from half an hour before the lowering; gives each event with its instant, relative to the lowering. */
function watch(subjects: Record<string, Subject>, options: { untilMs?: number; skips?: (ms: number) => boolean } = {}) {
  const { untilMs = minutes(60), skips = () => false } = options;
  let memory: WatchMemory = NOTHING_WATCHED;
  const events: (WatchEvent & { afterMs: number })[] = [];
  const told: number[] = [];
  for (let ms = -minutes(30); ms <= untilMs; ms += ROUND_MS) {
    if (skips(ms)) continue;
    const computes = Object.entries(subjects).map(([computeId, { loweredAtMs, startedAtMs, state }]): JudgedCompute => {
      const isLowered = loweredAtMs !== undefined && SIX + ms >= loweredAtMs;
      return { computeId, state: state(ms), startedAtMs, loweredAtMs: isLowered ? loweredAtMs : undefined };
    });
    // Each round reads what the round before has stored.
    const before = JSON.parse(JSON.stringify(memory)) as WatchMemory;
    const step = watchRound(TERMS, before, { atMs: SIX + ms, computes });
    memory = step.memory;
    events.push(...step.events.map((event) => ({ ...event, afterMs: ms })));
    if (step.tellCommon) told.push(ms);
  }
  return { events, told, outcomes: events.map(({ computeId, outcome }) => [computeId, outcome]), memory };
}

const healthy: StateAt = () => 'healthy';
const badFrom =
  (fromMs: number, untilMs = Number.POSITIVE_INFINITY): StateAt =>
  (ms) =>
    ms >= fromMs && ms < untilMs ? 'bad' : 'healthy';
const lowered = (state: StateAt, more: Partial<Subject> = {}): Subject => ({ loweredAtMs: SIX, state, ...more });
/** So many computes that were not lowered. */
const others = (count: number, state: StateAt): Record<string, Subject> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`other-${index}`, { state }]));

describe('a watch after a lowering', () => {
  it('finds the harm as soon as the compute has been bad for the time that the guard demands', () => {
    const { events } = watch({ a: lowered(badFrom(minutes(10))), ...others(3, healthy) });
    expect(events).toEqual([
      {
        ...{ computeId: 'a', outcome: 'harm', afterMs: minutes(13) },
        ...{ loweredAtMs: SIX, badSinceMs: SIX + minutes(10) },
      },
    ]);
  });

  it('ends as healthy after its time; a shorter badness, or one that is broken, is none', () => {
    const broken: StateAt = (ms) => (ms >= minutes(5) && ms % minutes(3) !== 0 ? 'bad' : 'healthy');
    const once = badFrom(minutes(5), minutes(7.5));
    const { events, outcomes } = watch({ a: lowered(broken), b: lowered(once), c: lowered(healthy) });
    expect(outcomes.toSorted()).toEqual([
      ['a', 'healthy'],
      ['b', 'healthy'],
      ['c', 'healthy'],
    ]);
    expect(events.every(({ afterMs }) => afterMs >= minutes(30) && afterMs < minutes(34))).toBe(true);
  });

  it('leaves the time in which the compute settles out, after the lowering and after each start', () => {
    const settling = badFrom(0, minutes(2));
    const { events } = watch({ a: lowered(badFrom(0)), ...others(3, healthy) });
    expect(events[0]).toMatchObject({ badSinceMs: SIX + minutes(2), afterMs: minutes(5) });
    expect(watch({ a: lowered(settling) }).outcomes).toEqual([['a', 'healthy']]);
    const started = watch({ a: lowered(badFrom(0), { startedAtMs: SIX + minutes(8) }), ...others(3, healthy) });
    expect(started.events[0]).toMatchObject({ badSinceMs: SIX + minutes(10), outcome: 'harm' });
  });

  it('counts the time awake alone', () => {
    const wakes: StateAt = (ms) => (ms < minutes(40) ? undefined : 'healthy');
    const { events } = watch({ a: lowered(wakes) }, { untilMs: minutes(90) });
    expect(events).toMatchObject([{ outcome: 'healthy', afterMs: minutes(70) }]);
    expect(watch({ a: lowered(() => undefined) }, { untilMs: minutes(1440) }).events).toEqual([]);
  });

  it('says so where the guard says nothing all the time, and finds no harm', () => {
    const { events } = watch({ a: lowered((ms) => (ms < 0 ? 'bad' : 'unknown')) });
    expect(events).toMatchObject([{ outcome: 'no_samples', afterMs: minutes(30) }]);
  });

  it('ends where the guard says nothing any more after it was bad', () => {
    const badAtLast = badFrom(minutes(29));
    const a = lowered((ms) => (ms < minutes(31) ? badAtLast(ms) : 'unknown'));
    const { outcomes } = watch({ a }, { untilMs: minutes(70) });
    expect(outcomes).toEqual([['a', 'no_samples']]);
  });

  it('does not take a gap for badness: a daemon that was away begins to count anew', () => {
    const skips = (ms: number) => ms > minutes(11) && ms < minutes(14);
    const { events } = watch({ a: lowered(badFrom(minutes(10))), ...others(3, healthy) }, { skips });
    expect(events).toMatchObject([{ outcome: 'harm', badSinceMs: SIX + minutes(14), afterMs: minutes(17) }]);
  });

  it('finds each harm once, and watches the next lowering again', () => {
    const again = { a: { loweredAtMs: SIX, state: badFrom(minutes(10)) } };
    expect(watch(again, { untilMs: minutes(300) }).events).toHaveLength(1);
    expect(watch(again).memory.harms).toHaveLength(1);
  });
});

describe('what is not the doing of a lowering', () => {
  it('badness that began before it', () => {
    const { events, told } = watch({ a: lowered(badFrom(-minutes(4))), ...others(3, healthy) });
    expect(events).toMatchObject([{ outcome: 'common_cause', afterMs: minutes(5) }]);
    expect(told).toEqual([minutes(5)]);
  });

  it('badness that computes share which were not lowered; a single one of many is no such sign', () => {
    const outage = badFrom(minutes(10), minutes(20));
    const { events, outcomes } = watch({ a: lowered(outage), ...others(2, healthy), other: { state: outage } });
    expect(outcomes).toEqual([
      ['a', 'common_cause'],
      ['a', 'healthy'],
    ]);
    expect(events[0]?.afterMs).toBe(minutes(13));
    const alone = watch({ a: lowered(outage), ...others(100, healthy), other: { state: outage } });
    expect(alone.outcomes).toEqual([['a', 'harm']]);
  });

  it('is not excused by a compute that has been bad for long, or only for a moment', () => {
    const harm = badFrom(minutes(10));
    const broken = { state: badFrom(-minutes(30)) };
    const spike = { state: badFrom(minutes(12), minutes(13.5)) };
    for (const other of [broken, spike]) expect(watch({ a: lowered(harm), other }).outcomes).toEqual([['a', 'harm']]);
  });

  it('waits until it can tell whether others that became bad a little later stay bad', () => {
    const a = lowered(badFrom(minutes(10), minutes(30)));
    const outage = others(3, badFrom(minutes(12), minutes(30)));
    expect(watch({ a, ...outage }).events).toMatchObject([
      { outcome: 'common_cause', afterMs: minutes(13.5) },
      { outcome: 'healthy' },
    ]);
    const later = others(3, badFrom(minutes(13.5), minutes(30)));
    expect(watch({ a, ...later }).events).toMatchObject([{ outcome: 'harm', afterMs: minutes(13) }]);
    const spike = others(3, badFrom(minutes(12.5), minutes(13.5)));
    expect(watch({ a, ...spike }).events).toMatchObject([{ outcome: 'harm', afterMs: minutes(13.5) }]);
  });

  it('badness that goes on after a gap: it began before the gap', () => {
    const gap = (state: StateAt, fromMs: number, untilMs: number): StateAt => {
      return (ms) => (ms >= fromMs && ms < untilMs ? 'unknown' : state(ms));
    };
    const outage = badFrom(minutes(5), minutes(40));
    const a = lowered(gap(outage, minutes(12), minutes(15)));
    const found = watch({ a, ...others(3, outage) }, { untilMs: minutes(30) });
    expect(found.outcomes).toEqual([['a', 'common_cause']]);
    const early = lowered(gap(outage, minutes(6), minutes(9)));
    expect(watch({ a: early, ...others(3, outage) }, { untilMs: minutes(30) }).events).toMatchObject([
      { outcome: 'common_cause', afterMs: minutes(12) },
    ]);
    const before = lowered(gap(badFrom(-minutes(10)), -minutes(1), minutes(3)));
    expect(watch({ a: before, ...others(3, healthy) }).events).toMatchObject([{ outcome: 'common_cause' }]);
    const slept: StateAt = (ms) => (ms >= minutes(8) && ms < minutes(20) ? undefined : outage(ms));
    const wakes = watch({ a: lowered(slept), ...others(3, badFrom(minutes(5), minutes(10))) });
    expect(wakes.events).toMatchObject([{ outcome: 'harm', afterMs: minutes(23) }]);
  });

  it('badness of more than two computes, or 2 %, in the same minutes', () => {
    const some = (count: number, apartMs: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, n) => [`l-${n}`, lowered(badFrom(minutes(5) + n * apartMs))]),
      );
    const outcomes = (subjects: Record<string, Subject>) =>
      watch(subjects).events.map(({ outcome, afterMs }) => [outcome, afterMs / minutes(1)]);
    expect(outcomes(some(2, 0))).toEqual([
      ['harm', 8],
      ['harm', 8],
    ]);
    expect(outcomes(some(3, minutes(1)))).toEqual(
      Array.from({ length: 3 }, () => ['common_cause', expect.any(Number)]),
    );
    expect(outcomes({ ...some(5, 0), ...others(245, healthy) })).toEqual(Array.from({ length: 5 }, () => ['harm', 8]));
    const { events, told } = watch(some(20, 0), { untilMs: minutes(120) });
    expect(events.filter(({ outcome }) => outcome === 'harm')).toEqual([]);
    expect(told).toHaveLength(1);
  });

  it('is not assumed of computes that become bad one after another: all are found, two in ten minutes', () => {
    const some = Object.fromEntries(
      Array.from({ length: 5 }, (_, n) => [`l-${n}`, lowered(badFrom(minutes(5) + n * minutes(3.5)))]),
    );
    const found = watch(some).events.map(({ computeId, outcome, afterMs }) => [
      computeId,
      outcome,
      afterMs / minutes(1),
    ]);
    expect(found).toEqual([
      ['l-0', 'harm', 8],
      ['l-1', 'harm', 11.5],
      ['l-2', 'harm', 18],
      ['l-3', 'harm', 21.5],
      ['l-4', 'harm', 28],
    ]);
    const passing = { ...some, 'l-2': lowered(badFrom(minutes(12), minutes(16))) };
    expect(watch(passing).events.filter(({ outcome }) => outcome === 'harm')).toHaveLength(4);
  });

  it('goes on with the watch, and finds what begins after the common cause', () => {
    const twice: StateAt = (ms) => (ms >= minutes(5) && ms < minutes(10) ? 'bad' : badFrom(minutes(20))(ms));
    const outage = { state: badFrom(minutes(5), minutes(10)) };
    expect(watch({ a: lowered(twice), outage, ...others(5, healthy) }).outcomes).toEqual([
      ['a', 'common_cause'],
      ['a', 'harm'],
    ]);
  });
});

describe('whatever is seen', () => {
  const states = fc.array(fc.constantFrom('healthy', 'bad', 'bad', 'unknown', undefined), {
    minLength: 30,
    maxLength: 200,
  });
  const subject = fc.record({
    states,
    loweredAtMs: fc.option(
      fc.nat(40).map((n) => SIX - minutes(10) + n * ROUND_MS),
      { nil: undefined },
    ),
  });

  it('a harm is found once for a lowering, is bad for long enough, and began after it', () => {
    fc.assert(
      fc.property(fc.array(subject, { minLength: 1, maxLength: 6 }), (all) => {
        const subjects = Object.fromEntries(
          all.map(({ states: list, loweredAtMs }, index): [string, Subject] => [
            `c-${index}`,
            {
              state: (ms) => list[(ms + minutes(30)) / ROUND_MS],
              ...(loweredAtMs !== undefined && { loweredAtMs }),
            },
          ]),
        );
        const { events } = watch(subjects);
        const harms = events.filter(({ outcome }) => outcome === 'harm');
        expect(new Set(harms.map(({ computeId }) => computeId)).size).toBe(harms.length);
        for (const { computeId, afterMs, badSinceMs = 0, loweredAtMs } of harms) {
          expect(badSinceMs).toBeGreaterThan(loweredAtMs);
          expect(SIX + afterMs - badSinceMs).toBeGreaterThanOrEqual(TERMS.forMs);
          const index = Number(computeId.slice(2));
          const from = (badSinceMs - SIX + minutes(30)) / ROUND_MS;
          const span = all[index]?.states.slice(from, (afterMs + minutes(30)) / ROUND_MS + 1) ?? [];
          expect(span).not.toContain('healthy');
          expect([span.at(0), span.at(-1)]).toEqual(['bad', 'bad']);
        }
        const ends = events.filter(({ outcome }) => outcome !== 'common_cause');
        expect(new Set(ends.map(({ computeId }) => computeId)).size).toBe(ends.length);
      }),
      { numRuns: 200 },
    );
  });
});
