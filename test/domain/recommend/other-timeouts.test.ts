import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/domain/random.ts';
import { replayTimeouts } from '../../../src/domain/recommend/other-timeouts.ts';
import {
  DAY,
  exponential,
  HOUR,
  logNormal,
  MINUTE,
  SECOND,
  type Span,
  simulate,
  visits,
} from '../../support/demand.ts';
import { historyOf } from './history.ts';

const TO = Date.parse('2026-11-02T00:00:00Z');
const SPAN: Span = { fromMs: TO - 14 * DAY, toMs: TO };

/** The same clients under two timeouts: what the replay of the first says of the second, and what was. */
function tried(seed: number, hadSeconds: number, wantedSeconds: number) {
  const random = seededRandom(seed);
  const activities = visits(
    SPAN,
    () => exponential(random, 20 * MINUTE),
    () => logNormal(random, 3 * MINUTE, 1),
  );
  const under = (timeoutSeconds: number) =>
    simulate({ ...SPAN, random: seededRandom(seed), activities, timeoutSeconds });
  const had = under(hadSeconds);
  const always = (suspendTimeoutSeconds: number) => [{ ...SPAN, suspendTimeoutSeconds }];
  const effects = replayTimeouts(historyOf(had, SPAN), always(hadSeconds), always(wantedSeconds));
  const sum = (end: 'low' | 'high') => effects.reduce((all, { savedMs }) => all + savedMs[end], 0) / SECOND;
  const figures = [...new Set(effects.map(({ figure }) => figure))];
  return { low: sum('low'), high: sum('high'), figures, truth: had.awakeSeconds - under(wantedSeconds).awakeSeconds };
}

describe('what another timeout would have saved', () => {
  it.each([1, 2, 3, 4, 5])('replays a longer one, draw %i', (seed) => {
    const { low, high, figures, truth } = tried(seed, 300, 900);
    expect(figures).toEqual(['replayed']);
    expect(low).toBe(high);
    expect(truth).toBeLessThan(0);
    // Instants are whole seconds, and starts take part of one.
    expect(Math.abs(low / truth - 1)).toBeLessThan(0.01);
  });

  it.each([1, 2, 3, 4, 5])('has a shorter one between what is sure and what is possible, draw %i', (seed) => {
    const { low, high, figures, truth } = tried(seed, 900, 60);
    expect(figures).toEqual(['at_least']);
    expect(low).toBeLessThanOrEqual(truth);
    expect(high).toBeGreaterThanOrEqual(truth);
  });

  const at = (hour: number) => TO + hour * HOUR;
  const awake = { intervals: [{ startMs: at(0), endMs: at(2), start: 'client', end: 'timeout' }] as const };
  const history = { ...awake, intervals: [...awake.intervals], unknown: [], toMs: at(24), startDurationsMs: [] };
  const span = (fromHour: number, toHour: number, suspendTimeoutSeconds: number) => ({
    ...{ fromMs: at(fromHour), toMs: at(toHour), suspendTimeoutSeconds },
  });

  it('follows a timeout that changes while it runs', () => {
    // The last client was there at 1:00. An hour is not over when two hours begin to count, and these end at once at 3:00.
    const wanted = [span(0, 1.5, 3600), span(1.5, 24, 7200)];
    const [effect] = replayTimeouts(history, [span(0, 24, 3600)], wanted);
    expect(effect).toMatchObject({ savedMs: { low: -HOUR, high: -HOUR }, figure: 'replayed' });
  });

  it('goes on to the next start at most, and to what is not known', () => {
    const next = { startMs: at(2.5), endMs: at(3), start: 'client', end: 'operation' } as const;
    const [had, wanted] = [[span(0, 24, 3600)], [span(0, 24, 7200)]];
    const [effect] = replayTimeouts({ ...history, intervals: [...history.intervals, next] }, had, wanted);
    expect(effect?.savedMs.low).toBe(-HOUR / 2);
    const unknown = [{ fromMs: at(2.25), toMs: at(4) }];
    expect(replayTimeouts({ ...history, unknown }, had, wanted)[0]?.savedMs.low).toBe(-HOUR / 4);
  });

  it('says nothing where one of the two never suspends', () => {
    expect(replayTimeouts(history, [span(0, 24, -1)], [span(0, 24, 300)])).toEqual([]);
    expect(replayTimeouts(history, [span(0, 24, 3600)], [span(0, 24, -1)])).toEqual([]);
  });
});
