/** The tests that mutation testing runs: seeds, each on its own. See docs/simulation.md. */

import { it } from 'vitest';
import { planOf } from './plan.ts';
import { simulate } from './run.ts';

const count = Number(process.env.EBB_SIM_SEEDS ?? 40);

it.each(Array.from({ length: count }, (_, index) => 1 + index))('seed %i', async (seed) => {
  const [broken] = (await simulate(planOf(seed))).violations;
  if (broken) throw new Error(`${broken.rule}: ${broken.what}`);
});
