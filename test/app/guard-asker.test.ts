/** What a guard had before is read in parts, and not again within a step, whether it was answered or not. */
import { expect, it } from 'vitest';
import { createGuardAsker } from '../../src/app/guards/ask.ts';
import type { SeriesRange, SeriesRead } from '../../src/ports/guards.ts';
import { aCompute, aGuard, at } from '../support/builders.ts';

const NOW = at('2026-03-04T12:02:00Z');
const STEP_MS = 300_000;
const HOUR_MS = 3_600_000;
const SOURCE = { name: 'main', file: 'ebb.yaml', from: 'prometheus', url: 'http://unused', everyMs: 60_000 } as const;
const guard = aGuard({ match: { id: '{compute_id}' }, badWhen: { side: 'above', limit: 1.5, relative: true } });
const computes = [aCompute({ computeId: 'ep-one' })];

/** A source that has a value at each step, and refuses answers with more points than `mostPoints`. */
function asking(mostPoints: number) {
  const asked: SeriesRange[] = [];
  const seriesOf = (range: SeriesRange): SeriesRead => {
    const count = (range.toMs - range.fromMs) / range.stepMs + 1;
    if (count > mostPoints) return { ok: false, error: { code: 'malformed', message: 'the answer is too long' } };
    const samples = Array.from({ length: count }, (_, step) => ({
      atMs: range.fromMs + step * range.stepMs,
      value: 10,
    }));
    return { ok: true, value: [{ labels: { id: 'ep-one' }, samples }] };
  };
  const series = {
    latest: async () => seriesOf({ fromMs: NOW, toMs: NOW, stepMs: STEP_MS }),
    range: async (_: string, range: SeriesRange) => {
      asked.push(range);
      return seriesOf(range);
    },
  };
  const asker = createGuardAsker({ of: () => series, close: async () => {} });
  const signal = new AbortController().signal;
  return { asked, ask: (nowMs: number) => asker.ask({ guard, source: SOURCE, computes, nowMs, signal }) };
}

it('two days are read without a gap, in answers of a quarter of a day; what is over is not read again', async () => {
  const { asked, ask } = asking(72);
  expect((await ask(NOW)).verdicts.get('ep-one')).toMatchObject({ state: 'healthy', value: 10, limit: 15 });
  const sameHours = (range: SeriesRange) => range.toMs - range.fromMs === HOUR_MS;
  const parts = asked.filter((range) => !sameHours(range)).toSorted((a, b) => a.fromMs - b.fromMs);
  const gaps = parts.slice(1).map(({ fromMs }, index) => fromMs - (parts[index]?.toMs ?? 0));
  expect(gaps).toEqual(Array(8).fill(STEP_MS));
  expect(parts.at(-1)?.toMs).toBe(at('2026-03-04T12:00:00Z'));
  const before = asked.length;
  await ask(NOW + 60_000);
  expect(asked).toHaveLength(before);
  await ask(NOW + STEP_MS);
  expect(asked.slice(before)).toEqual([
    { fromMs: at('2026-03-04T12:00:00Z'), toMs: at('2026-03-04T12:05:00Z'), stepMs: STEP_MS },
  ]);
  // The last sample of a part may still be missing while it is new.
  const later = asked.length;
  await ask(at('2026-03-04T18:00:00Z'));
  const again = asked.slice(later).filter((range) => !sameHours(range));
  expect(again.map(({ fromMs, toMs }) => (toMs - fromMs) / STEP_MS)).toEqual([71, 0]);
});

it('what a source refuses is asked for again after a step', async () => {
  const { asked, ask } = asking(10);
  expect((await ask(NOW)).error).toMatchObject({ code: 'malformed' });
  const before = asked.length;
  expect((await ask(NOW + 60_000)).error).toMatchObject({ code: 'malformed' });
  expect(asked).toHaveLength(before);
  await ask(NOW + STEP_MS);
  expect(asked.length).toBeGreaterThan(before);
});
