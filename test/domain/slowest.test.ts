import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type BoundaryInput, lastBoundary, searchBoundary } from '../../src/domain/decide/boundaries.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import {
  MAX_STEPS,
  MAX_STEPS_BACK,
  MAX_STEPS_OF_DECISION,
  MAX_STEPS_TO_FIND_CHANGE,
  stepsToFindChange,
  stepsToFollow,
} from '../../src/domain/decide/search-cost.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { prepareDates } from '../../src/domain/time/windows/date-filter.ts';
import {
  anyOpenAt,
  mayChangeAfter,
  mayHaveChangedUntil,
  nextChangeOfAny,
  openSince,
} from '../../src/domain/time/windows.ts';
import { aCompute, aHold, at, compiled } from '../support/builders.ts';
import { timeSpecs } from './arbitraries.ts';
import { costlySets, costlyTimes, counted } from './costly-policies.ts';
import { slowest } from './slowest-draws.ts';

/** 100,000 by `npm run slowest`. */
const RUNS = Number(process.env.EBB_SLOWEST_RUNS ?? 60);
/** EBB_SEED=634690035 for the same draws again. */
const SEEDED = process.env.EBB_SEED === undefined ? {} : { seed: Number(process.env.EBB_SEED) };
/** A day before the clocks of Berlin are set forward. */
const AROUND = { zone: 'Europe/Berlin', fromMs: at('2026-03-28T00:00:00Z'), days: 4 };
const instants = fc.integer({ min: 0, max: 4 * 1440 }).map((minute) => AROUND.fromMs + minute * 60_000);
const warmUp = Math.min(200, RUNS / 10);

/** A hold that hides every change leaves the most to search through. */
const held = aHold({
  ...{ size: { minCu: 4, maxCu: 4 }, createdAtMs: AROUND.fromMs - 1 },
  expiresAtMs: AROUND.fromMs + 600 * 86_400_000,
});

/** How often the code may read the kind of a window for one check of it. */
const READS_OF_KIND = 4;

const QUESTIONS = [anyOpenAt, openSince, mayHaveChangedUntil, mayChangeAfter, nextChangeOfAny];

it('every question about windows takes a bounded number of steps, and each answer brings a search further', () => {
  const clocks = QUESTIONS.map((question) => ({
    question,
    clock: slowest({
      ...{ name: question.name, boundMs: 5, warmUp },
      ask: ({ specs, instantMs }: { specs: TimeSpec[]; instantMs: number }) => question(specs, instantMs),
    }),
  }));
  let most = 0;
  fc.assert(
    fc.property(fc.oneof(timeSpecs(AROUND), costlyTimes(AROUND)), instants, (drawn, instantMs) => {
      fc.pre(stepsToFindChange(drawn) <= MAX_STEPS_TO_FIND_CHANGE);
      for (const spec of drawn) prepareDates(spec);
      for (const { question, clock } of clocks) {
        const { copy, steps } = counted(drawn);
        const prepare = () => ({ specs: drawn.map((spec) => ({ ...spec })), instantMs });
        clock.try({ specs: copy, instantMs }, prepare, [drawn, instantMs]);
        most = Math.max(most, steps() / READS_OF_KIND);
        const expected = question === nextChangeOfAny ? stepsToFindChange(drawn) : stepsToFollow(drawn);
        expect(steps()).toBeLessThanOrEqual(READS_OF_KIND * expected);
      }
      expect(mayChangeAfter(drawn, instantMs) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(instantMs);
    }),
    { numRuns: RUNS, ...SEEDED },
  );
  for (const { clock } of clocks) clock.tell();
  process.stderr.write(`most steps of one question: ${most.toFixed()} of ${MAX_STEPS_TO_FIND_CHANGE}\n`);
});

it('every decision and every search for a boundary takes a bounded number of steps, ahead and back', () => {
  const inputOf = (given: Policy[], isHeld: boolean): BoundaryInput => ({
    ...{ policies: compiled(...given), compute: aCompute(), baseline: undefined, holds: isHeld ? [held] : [] },
  });
  interface Prepared {
    input: BoundaryInput;
    instantMs: number;
  }
  const searches = [
    {
      ...{ name: 'decision', mostSteps: MAX_STEPS_OF_DECISION },
      ask: ({ input, instantMs }: Prepared) => decide({ ...input, instantMs }),
    },
    {
      ...{ name: 'search ahead', mostSteps: 2 * MAX_STEPS_OF_DECISION + MAX_STEPS },
      ask: ({ input, instantMs }: Prepared) => searchBoundary(input, instantMs),
    },
    {
      ...{ name: 'search back', mostSteps: 2 * MAX_STEPS_OF_DECISION + MAX_STEPS_BACK },
      ask: ({ input, instantMs }: Prepared) => lastBoundary(input, instantMs, 'size'),
    },
  ].map((search) => ({ ...search, clock: slowest({ ...search, boundMs: 20, warmUp }), most: 0 }));
  fc.assert(
    fc.property(costlySets(AROUND), instants, fc.boolean(), (given, instantMs, isHeld) => {
      for (const search of searches) {
        const { copy, steps } = counted(given);
        const prepare = () => ({ input: inputOf(structuredClone(given), isHeld), instantMs });
        search.clock.try({ input: inputOf(copy, isHeld), instantMs }, prepare, [given, instantMs, isHeld]);
        search.most = Math.max(search.most, steps() / READS_OF_KIND);
        expect(steps()).toBeLessThanOrEqual(READS_OF_KIND * search.mostSteps);
      }
      const { searchedUntilMs } = searchBoundary(inputOf(given, isHeld), instantMs);
      if (searchedUntilMs !== undefined) expect(searchedUntilMs).toBeGreaterThan(instantMs);
    }),
    { numRuns: RUNS, ...SEEDED },
  );
  for (const { name, clock, most, mostSteps } of searches) {
    clock.tell();
    process.stderr.write(`most steps of one ${name}: ${most.toFixed()} of ${mostSteps}\n`);
  }
});
