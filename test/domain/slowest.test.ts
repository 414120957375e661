import fc from 'fast-check';
import { expect, it } from 'vitest';
import { searchBoundary } from '../../src/domain/decide/boundaries.ts';
import { MOST_STEPS } from '../../src/domain/decide/search-cost.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { anyOpenAt, mayChangeAfter, mayHaveChangedUntil, openSince } from '../../src/domain/time/windows.ts';
import { policySets, timeSpecs } from '../support/arbitraries.ts';
import { aCompute, at, compiled } from '../support/builders.ts';

/** EBB_SLOWEST_RUNS=100000 EBB_PROPERTY_SECONDS=36000 for the long search. */
const RUNS = Number(process.env.EBB_SLOWEST_RUNS ?? 150);
/** EBB_SEED=634690035 for the same draws again. */
const SEEDED = process.env.EBB_SEED === undefined ? {} : { seed: Number(process.env.EBB_SEED) };
/** A day before the clocks of Berlin are set forward. */
const AROUND = { zone: 'Europe/Berlin', fromMs: at('2026-03-28T00:00:00Z'), days: 4 };
const instants = fc.integer({ min: 0, max: 4 * 1440 }).map((minute) => AROUND.fromMs + minute * 60_000);

/** Times are printed, never asserted: how much is looked at is what is bounded. What is drawn is asked about as a copy: nothing is known of it. */
function slowest<D, T>(name: string, ask: (drawn: D) => T) {
  let most: { ms: number; of: D } | undefined;
  return {
    try(drawn: D): T {
      const { ms, answer } = timed(drawn, ask);
      if (ms > (most?.ms ?? 0)) most = { ms, of: drawn };
      return answer;
    },
    tell() {
      if (!most) return;
      const { ms, of } = most;
      const [, , again = 0] = Array.from({ length: 5 }, () => timed(of, ask).ms).sort((a, b) => a - b);
      const times = `${ms.toFixed(1)} ms of CPU, ${again.toFixed(1)} ms in the middle of five when warm`;
      process.stderr.write(`slowest ${name}: ${times}, ${JSON.stringify(of).slice(0, 2000)}\n`);
    },
  };
}

function timed<D, T>(drawn: D, ask: (drawn: D) => T): { ms: number; answer: T } {
  const copy = structuredClone(drawn);
  const begun = process.cpuUsage();
  const answer = ask(copy);
  const { user, system } = process.cpuUsage(begun);
  return { ms: (user + system) / 1000, answer };
}

type Asked = readonly [specs: readonly TimeSpec[], instantMs: number];

it('every question about windows is answered, and each answer brings a search further', () => {
  const clocks = [anyOpenAt, openSince, mayHaveChangedUntil].map((question) =>
    slowest(question.name, ([specs, instantMs]: Asked): unknown => question(specs, instantMs)),
  );
  const ahead = slowest('mayChangeAfter', ([specs, instantMs]: Asked) => mayChangeAfter(specs, instantMs));
  fc.assert(
    fc.property(timeSpecs(AROUND), instants, (specs, instantMs) => {
      for (const clock of clocks) clock.try([specs, instantMs]);
      const nextMs = ahead.try([specs, instantMs]);
      if (nextMs !== undefined) expect(nextMs).toBeGreaterThan(instantMs);
    }),
    { numRuns: 4 * RUNS, ...SEEDED },
  );
  for (const clock of [...clocks, ahead]) clock.tell();
});

it('every search for a boundary makes a bounded number of steps', () => {
  let decisions = 0;
  const clock = slowest('search for a boundary', ({ given, instantMs }: { given: Policy[]; instantMs: number }) => {
    const policies = compiled(...given);
    const instantsAsked = new Set<number>();
    const counting = {
      ...policies,
      effectiveFor: (...args: Parameters<typeof policies.effectiveFor>) => {
        instantsAsked.add(args[1]);
        return policies.effectiveFor(...args);
      },
    };
    const found = searchBoundary({ policies: counting, compute: aCompute(), baseline: undefined }, instantMs);
    decisions = instantsAsked.size;
    return found;
  });
  let most = 0;
  fc.assert(
    fc.property(policySets(AROUND), instants, (given, instantMs) => {
      const { searchedUntilMs } = clock.try({ given, instantMs });
      if (searchedUntilMs !== undefined) expect(searchedUntilMs).toBeGreaterThan(instantMs);
      most = Math.max(most, decisions);
      expect(decisions).toBeLessThanOrEqual(2 + MOST_STEPS / 10);
    }),
    { numRuns: RUNS, ...SEEDED },
  );
  clock.tell();
  process.stderr.write(`most decisions for one boundary: ${most}\n`);
});
