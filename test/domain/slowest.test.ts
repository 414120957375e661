import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type BoundaryInput, lastBoundary, searchBoundary } from '../../src/domain/decide/boundaries.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { MOST_STEPS_OF_DECISION, stepsToFollow } from '../../src/domain/decide/search-cost.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { prepareDates } from '../../src/domain/time/windows/date-filter.ts';
import { mostSearches } from '../../src/domain/time/windows/stretch.ts';
import {
  anyOpenAt,
  mayChangeAfter,
  mayHaveChangedUntil,
  nextChangeOfAny,
  openSince,
} from '../../src/domain/time/windows.ts';
import { timeSpecs } from '../support/arbitraries.ts';
import { aCompute, aHold, at, compiled } from '../support/builders.ts';
import { costlySets, costlyTimes, counted } from '../support/costly-policies.ts';

/** EBB_SLOWEST_RUNS=100000 EBB_PROPERTY_SECONDS=36000 for the long search. */
const RUNS = Number(process.env.EBB_SLOWEST_RUNS ?? 60);
/** EBB_SEED=634690035 for the same draws again. */
const SEEDED = process.env.EBB_SEED === undefined ? {} : { seed: Number(process.env.EBB_SEED) };
/** A day before the clocks of Berlin are set forward. */
const AROUND = { zone: 'Europe/Berlin', fromMs: at('2026-03-28T00:00:00Z'), days: 4 };
const instants = fc.integer({ min: 0, max: 4 * 1440 }).map((minute) => AROUND.fromMs + minute * 60_000);

/** A hold that hides every change leaves the most to search through. */
const held = aHold({
  ...{ size: { minCu: 4, maxCu: 4 }, createdAtMs: AROUND.fromMs - 1 },
  expiresAtMs: AROUND.fromMs + 600 * 86_400_000,
});

/** How often the code may look at the kind of a window for one question to it. */
const LOOKS_AT_KIND = 4;

/** Times are printed, never asserted: how much is done is what is bounded. */
function slowest<P>(name: string, ask: (prepared: P) => unknown) {
  let most = { ms: 0, firstMs: 0, of: '' };
  return {
    /** What is drawn is told of if it is slower than all before, also when an equal copy is asked a second time. */
    try(prepare: () => P, drawn: unknown): void {
      const firstMs = timed(prepare(), ask);
      if (firstMs <= most.ms) return;
      const ms = Math.min(firstMs, timed(prepare(), ask), timed(prepare(), ask));
      if (ms > most.ms) most = { ms, firstMs, of: JSON.stringify(drawn) };
    },
    tell() {
      const { ms, firstMs, of } = most;
      const times = `${ms.toFixed(1)} ms of CPU, ${firstMs.toFixed(1)} ms the first time`;
      process.stderr.write(
        `slowest ${name}: ${times}, ${of.replaceAll(/("days":\[)[^\]]{80,}/g, '$1…').slice(0, 1000)}\n`,
      );
    },
  };
}

function timed<P>(prepared: P, ask: (prepared: P) => unknown): number {
  const begun = process.cpuUsage();
  ask(prepared);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}

const QUESTIONS = [anyOpenAt, openSince, mayHaveChangedUntil, mayChangeAfter, nextChangeOfAny];

it('every question about windows takes a bounded number of steps, and each answer brings a search further', () => {
  const clocks = QUESTIONS.map((question) => ({
    question,
    clock: slowest(question.name, ({ specs, instantMs }: { specs: TimeSpec[]; instantMs: number }) =>
      question(specs, instantMs),
    ),
  }));
  let most = 0;
  fc.assert(
    fc.property(fc.oneof(timeSpecs(AROUND), costlyTimes(AROUND)), instants, (drawn, instantMs) => {
      for (const spec of drawn) prepareDates(spec);
      const prepare = () => ({ specs: counted(drawn).copy, instantMs });
      for (const { question, clock } of clocks) {
        clock.try(prepare, [drawn, instantMs]);
        const { copy, steps } = counted(drawn);
        const answer = question(copy, instantMs);
        if (question === mayChangeAfter && answer !== undefined) expect(answer).toBeGreaterThan(instantMs);
        most = Math.max(most, steps());
        const searches = question === nextChangeOfAny ? mostSearches(drawn.length) : 1;
        expect(steps()).toBeLessThanOrEqual(LOOKS_AT_KIND * searches * stepsToFollow(drawn));
      }
    }),
    { numRuns: RUNS, ...SEEDED },
  );
  for (const { clock } of clocks) clock.tell();
  process.stderr.write(`most steps of one question: ${most.toFixed()}\n`);
});

it('every search for a boundary makes a bounded number of steps, ahead and back', () => {
  const inputOf = (given: Policy[], isHeld: boolean): BoundaryInput => ({
    ...{ policies: compiled(...given), compute: aCompute(), baseline: undefined, holds: isHeld ? [held] : [] },
  });
  interface Prepared {
    input: BoundaryInput;
    instantMs: number;
  }
  const first = slowest('decision', ({ input, instantMs }: Prepared) => decide({ ...input, instantMs }));
  const searches = [
    {
      search: searchBoundary,
      clock: slowest('search ahead', (of: Prepared) => searchBoundary(of.input, of.instantMs)),
    },
    {
      search: (input: BoundaryInput, instantMs: number) => lastBoundary(input, instantMs, 'size'),
      clock: slowest('search back', (of: Prepared) => lastBoundary(of.input, of.instantMs, 'size')),
    },
  ];
  let most = 0;
  fc.assert(
    fc.property(costlySets(AROUND), instants, fc.boolean(), (given, instantMs, isHeld) => {
      const prepare = () => ({ input: inputOf(counted(given).copy, isHeld), instantMs });
      const decided = () => {
        const prepared = prepare();
        decide({ ...prepared.input, instantMs });
        return prepared;
      };
      first.try(prepare, [given, instantMs, isHeld]);
      for (const { search, clock } of searches) {
        clock.try(decided, [given, instantMs, isHeld]);
        const { copy, steps } = counted(given);
        const input = inputOf(copy, isHeld);
        decide({ ...input, instantMs });
        const before = steps();
        search(input, instantMs);
        most = Math.max(most, steps() - before);
        expect(steps() - before).toBeLessThanOrEqual(LOOKS_AT_KIND * MOST_STEPS_OF_DECISION);
      }
      const { searchedUntilMs } = searchBoundary(inputOf(given, isHeld), instantMs);
      if (searchedUntilMs !== undefined) expect(searchedUntilMs).toBeGreaterThan(instantMs);
    }),
    { numRuns: Math.ceil(RUNS / 4), ...SEEDED },
  );
  for (const clock of [first, ...searches.map((one) => one.clock)]) clock.tell();
  process.stderr.write(`most steps of one search: ${most.toFixed()}\n`);
});
