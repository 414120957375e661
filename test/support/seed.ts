/** Where the dice of a run start: told by EBB_SEED, else new with each run. */
const given = Number(process.env.EBB_SEED ?? Number.NaN);

export const SEED = Number.isInteger(given) ? given : Math.floor(Math.random() * 2 ** 31);

/** EBB_LONG=1 runs the long variants. */
export const isLong = process.env.EBB_LONG === '1';

/** To be told where dice are thrown: the same number gives the same faults again. */
export function printSeed(): void {
  process.stdout.write(`EBB_SEED=${SEED}\n`);
}

/**
 * Days at speed depend on a machine that keeps up with simulated time: they run where they are asked for, not where a slow
 * machine would fail them. `EBB_SCENARIO=1` a short one, `EBB_LONG=1` the whole.
 */
export const runsScenarios = isLong || process.env.EBB_SCENARIO === '1';
