/** The entry of a bundle: one seed, and what became of it. */

import { type Digests, digestsOf } from './outcome.ts';
import { planOf } from './plan.ts';
import { simulate } from './run.ts';

export interface Done {
  seed: number;
  broken: { rule: string; what: string } | undefined;
  reached: [string, number][];
  /** How often each place was reached that mutants change, by the mutant's index; see `withHits`. */
  hits: [number, number][];
  outcome: Digests;
  /** Processor time, in milliseconds. */
  usedMs: number;
}

const hits = new Map<number, number>();
Object.assign(globalThis, { hit: (index: number) => void hits.set(index, (hits.get(index) ?? 0) + 1) });

export async function runSeed(seed: number): Promise<Done> {
  hits.clear();
  const before = process.cpuUsage();
  const { violations, reached, outcome } = await simulate(planOf(seed));
  const { user, system } = process.cpuUsage(before);
  const [first] = violations;
  const broken = first && { rule: first.rule, what: first.what };
  const usedMs = (user + system) / 1000;
  return { seed, broken, reached: [...reached], hits: [...hits], outcome: digestsOf(outcome), usedMs };
}
