/**
 * What guards find and take back, against a real Prometheus that has the emulator's response times: harms that were injected, and months
 * without any. A short run; EBB_GUARD_MONTHS=1000 the whole.
 */
import { expect, it } from 'vitest';
import { describeWith } from '../support/requirements.ts';
import { runBoundary } from './guarded-boundary.ts';
import { runMonths } from './harmless-months.ts';
import { harmLines, runHarms } from './injected-harms.ts';

const MONTHS = Number(process.env.EBB_GUARD_MONTHS ?? 2);
/** This seed and the limits below were fixed before the rules of watches were changed last, for which 20261126 and 1 to 9 were used. */
const SEED = Number(process.env.EBB_SEED ?? 20261207);
const HARMS = Math.min(200, Math.max(16, Math.round(MONTHS / 5)));
const NIGHTS = MONTHS >= 100 ? 14 : 1;
const COMPUTES = MONTHS >= 100 ? 100 : 12;
const OUTAGES = MONTHS >= 100 ? 20 : 1;
const AT_A_BOUNDARY = MONTHS >= 100 ? 300 : 6;

/** `for`, and 90 s. */
const LONGEST_MS = 180_000 + 90_000;
const HOURS_MS = 8 * 3_600_000;

describeWith('prometheus', `guards, seed ${SEED}`, () => {
  it(
    `find ${HARMS} harms of four kinds, and take each back once, as they may`,
    async () => {
      const run = await runHarms({ count: HARMS, seed: SEED, nights: NIGHTS });
      process.stdout.write(`${harmLines(run).join('\n')}\n`);
      const { outcomes, found, morningsMissed } = run;
      expect(outcomes.filter(({ harm }) => found.get(harm.name)?.length !== 1)).toEqual([]);
      const late = [...found.values()]
        .flat()
        .filter(({ badSinceMs, foundAtMs }) => foundAtMs - badSinceMs > LONGEST_MS);
      expect([late, morningsMissed]).toEqual([[], 0]);
      expect(outcomes.filter(({ undone }) => undone.length !== 1)).toEqual([]);
      const dropping = outcomes.filter(({ undone }) => undone.some(({ action }) => action.disconnects));
      expect(dropping.filter(({ harm }) => harm.remedy !== 'undo_with_restart')).toEqual([]);
    },
    HOURS_MS,
  );

  it(
    `take back at most one lowering in 100 of ${MONTHS} months without harm, and none for a common outage`,
    async () => {
      const months = await runMonths({ seed: SEED, computes: COMPUTES, months: MONTHS / COMPUTES, outages: OUTAGES });
      process.stdout.write(`${JSON.stringify(months)}\n`);
      const { computeMonths, lowerings, harms, outages } = months;
      expect(lowerings.awake).toBeGreaterThan(0);
      expect(lowerings.asleep).toBeGreaterThan(0);
      expect(harms).toBeLessThanOrEqual(Math.ceil(computeMonths / 100));
      expect(outages.harms).toBe(0);
      expect(lowerings.held).toBeLessThanOrEqual(Math.ceil((lowerings.awake + lowerings.asleep) / 100));
    },
    HOURS_MS,
  );

  it(
    `delay ${AT_A_BOUNDARY} computes at a boundary little, and cost few requests to the control API`,
    async () => {
      const without = await runBoundary(AT_A_BOUNDARY, false);
      const guarded = await runBoundary(AT_A_BOUNDARY, true);
      process.stdout.write(`${JSON.stringify({ without, guarded })}\n`);
      expect(guarded.changed).toBe(AT_A_BOUNDARY);
      expect(without.changed).toBe(AT_A_BOUNDARY);
      expect(guarded.requests).toBeLessThanOrEqual(1.05 * without.requests);
      expect(guarded.meanMs).toBeLessThanOrEqual(1.05 * without.meanMs + 1000);
    },
    HOURS_MS,
  );
});
