/** The entry of a bundle: one seed, and what became of it. */

import { planOf } from './plan.ts';
import { simulate } from './run.ts';

export interface Done {
  seed: number;
  broken: { rule: string; what: string } | undefined;
  reached: [string, number][];
  /** Processor time, in milliseconds. */
  usedMs: number;
}

export async function runSeed(seed: number): Promise<Done> {
  const before = process.cpuUsage();
  const { violations, reached } = await simulate(planOf(seed));
  const { user, system } = process.cpuUsage(before);
  const [first] = violations;
  const broken = first && { rule: first.rule, what: first.what };
  return { seed, broken, reached: [...reached], usedMs: (user + system) / 1000 };
}
