import type { createColors } from 'picocolors';
import type { AppliedChange } from '../../app/operator/apply-plan.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import { nameOf } from '../plan/describe-plan.ts';

type Colors = ReturnType<typeof createColors>;

/** One line for each compute whose change was begun or has ended. */
export function describeEnd({ compute }: EvaluatedCompute, applied: AppliedChange, colors: Colors): string {
  const name = nameOf(compute);
  if (applied.outcome === 'done') return `${colors.green('done')}     ${name}`;
  const word = applied.outcome === 'failed' ? colors.red('failed ') : colors.yellow('skipped');
  return `${word}  ${name}: ${applied.message}`;
}

/** As `2 done, 1 skipped`. */
export function summariseResults(results: Iterable<AppliedChange>): string {
  const outcomes = [...results].map(({ outcome }) => outcome);
  const count = (wanted: AppliedChange['outcome']) => outcomes.filter((outcome) => outcome === wanted).length;
  const rest = (['failed', 'skipped'] as const).flatMap((word) => (count(word) > 0 ? [`${count(word)} ${word}`] : []));
  return [`${count('done')} done`, ...rest].join(', ');
}

/** What became of each planned change, for other programs. */
export function resultsJson(atMs: number, hash: string, results: ReadonlyMap<EvaluatedCompute, AppliedChange>): object {
  const computes = [...results].map(([{ compute }, applied]) => ({
    project_id: compute.projectId,
    compute_id: compute.computeId,
    ...applied,
  }));
  return { at: isoInstant(atMs), hash, computes };
}
