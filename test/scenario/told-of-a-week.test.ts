/**
 * What the teams of a fleet are told in an ordinary week: each disconnect in time, or as unplanned; at most three other messages a team and
 * day; nothing that did not happen. CI has a Thursday morning of 60 computes (half a minute of processor time); EBB_LONG=1 a week of 300, of
 * three seeds (a quarter of an hour each).
 */
import { expect, it } from 'vitest';
import { isLong } from '../support/seed.ts';
import { judge, type Verdict } from './told-judge.ts';
import { runWeek } from './told-week.ts';

const HOUR_MS = 3_600_000;
const MONDAY_MS = Date.UTC(2026, 0, 12);
const RUNS = isLong
  ? [27001, 27002, 27003].map((seed) => ({
      seed,
      size: 300,
      fromMs: MONDAY_MS,
      toMs: MONDAY_MS + 177 * HOUR_MS,
    }))
  : [{ seed: 27001, size: 60, fromMs: MONDAY_MS + 79.6 * HOUR_MS, toMs: MONDAY_MS + 83.3 * HOUR_MS }];

it.each(RUNS)(
  'of $size computes, seed $seed: disconnects are told, little else is, and all of it is true',
  async ({ fromMs, toMs, ...drawn }) => {
    const verdict = judge(await runWeek({ fromMs, toMs, ...drawn }), fromMs, toMs);
    process.stdout.write(tableOf(verdict));
    expect(verdict.untold).toEqual([]);
    expect(verdict.untrue).toEqual([]);
    expect(verdict.most).toBeLessThanOrEqual(3);
    expect(verdict.inTime).toBeGreaterThan(0);
  },
  3_600_000,
);

function tableOf({ table, drops, inTime, late, unplanned, untold, untrue, most }: Verdict): string {
  const rows = [...table].map(
    ([team, days]) => `${team}  ${days.map(({ other, never }) => `${other}+${never}`).join('  ')}`,
  );
  return [
    'messages a day: others + those that are never folded',
    ...rows,
    `${drops} disconnects: ${inTime} announced in time, ${late} as soon as they could be seen, ${unplanned} told as unplanned, ${untold.length} not told`,
    `most others a day ${most}; untrue ${untrue.length}`,
    '',
  ].join('\n');
}
