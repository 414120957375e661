import type { createColors } from 'picocolors';
import type { Carried } from '../../app/carry-out.ts';
import { isoInstant } from '../../domain/instants.ts';
import type { PlannedCompute } from '../../domain/plan-fleet.ts';
import { nameOf } from '../plan/describe-plan.ts';

type Colors = ReturnType<typeof createColors>;

/** One line for each compute whose change was begun or has ended. */
export function describeEnd({ compute }: PlannedCompute, carried: Carried, colors: Colors): string {
  const name = nameOf(compute);
  if (carried.outcome === 'done') return `${colors.green('done')}     ${name}`;
  const word = carried.outcome === 'failed' ? colors.red('failed ') : colors.yellow('skipped');
  return `${word}  ${name}: ${carried.message}`;
}

/** As `2 done, 1 skipped`. */
export function summariseResults(results: Iterable<Carried>): string {
  const outcomes = [...results].map(({ outcome }) => outcome);
  const count = (wanted: Carried['outcome']) => outcomes.filter((outcome) => outcome === wanted).length;
  const rest = (['failed', 'skipped'] as const).flatMap((word) => (count(word) > 0 ? [`${count(word)} ${word}`] : []));
  return [`${count('done')} done`, ...rest].join(', ');
}

/** What became of each planned change, for other programs. */
export function resultsJson(atMs: number, hash: string, results: ReadonlyMap<PlannedCompute, Carried>): object {
  const computes = [...results].map(([{ compute }, carried]) => ({
    project_id: compute.projectId,
    compute_id: compute.computeId,
    ...carried,
  }));
  return { at: isoInstant(atMs), hash, computes };
}
