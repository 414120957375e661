import { expect, it } from 'vitest';
import { heldBackJson, heldBackLines } from '../../../src/cli/forecast/held-back.ts';
import { foresee } from '../../../src/cli/forecast/outlook.ts';
import { aCompute, aSchedule, at, aWindow, compiled } from '../../support/builders.ts';
import { PRICING } from './foreseen-fleet.ts';

const SMALL = { minCu: 0.25, maxCu: 0.5 };
const MONDAY = at('2026-03-02T00:00:00Z');
const WEEK = { fromMs: MONDAY, toMs: MONDAY + 7 * 86_400_000 };
const fleet = Array.from({ length: 10 }, (_, index) => ({ compute: aCompute({ computeId: `ep-${index}`, ...SMALL }) }));
const policies = (window = aWindow()) =>
  compiled(
    aSchedule({
      ...{ windows: [{ at: [window], size: { minCu: 1, maxCu: 4 } }], otherwise: { size: SMALL } },
      disruption: { atMost: { share: 0.3, windowMs: 600_000 } },
    }),
  );

it('a forecast names the changes that at_most holds back, counted over the whole fleet', () => {
  const [all, some] = [fleet, fleet.slice(0, 5)].map((subjects) =>
    foresee({ ...WEEK, policies: policies(), subjects, fleet, pricing: PRICING }),
  );
  expect(heldBackLines(all ?? [])).toHaveLength(5);
  expect(heldBackLines(all ?? [])[0]).toBe(
    'Held back by at_most 30% in 10m of office-hours at 2026-03-02T08:00:00Z, if all are awake: 7 computes, the last at 2026-03-02T08:30:00Z.',
  );
  expect(heldBackJson(some ?? [])[0]).toMatchObject({ at_most: '30% in 10m', wanted_at: '2026-03-02T08:00:00Z' });
  expect(some?.map(({ segments }) => segments)).toEqual(all?.slice(0, 5).map(({ segments }) => segments));
});

it('says where some are never made, and is brief about what recurs', () => {
  const brief = policies(aWindow({ days: [1, 2, 3, 4, 5, 6, 7], startMinute: 480, endMinute: 495 }));
  const twoWeeks = { ...WEEK, toMs: MONDAY + 14 * 86_400_000 };
  const lines = heldBackLines(foresee({ ...twoWeeks, policies: brief, subjects: fleet, pricing: PRICING }));
  expect(lines[0]).toContain('7 computes, some not before something else is wanted.');
  expect(lines.slice(10)).toEqual(['The same 4 more times: --json lists them.']);
});
