import type { Compute } from '../../domain/compute/compute.ts';
import type { JudgedCompute } from '../../domain/guards/watch.ts';
import { hasOperationRunning } from '../../domain/plan/gates/earlier-writes.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { GuardAnswer } from './ask.ts';

/** The interval of a guard's rounds, in milliseconds of the time that policies follow. */
export const ROUND_MS = 30_000;

/** Returns the computes about which a round asks: a sleeping one has no samples. */
export function askedOf(selected: readonly Compute[]): Compute[] {
  return selected.filter(({ state }) => state !== 'idle');
}

/** Returns the input of a watch round, from the answer of a guard. */
export function observed(
  selected: readonly Compute[],
  { verdicts, sinceLowered }: GuardAnswer,
  facts: {
    /** By compute id; see {@link JudgedCompute.loweredAtMs}. */
    loweredAtMs: ReadonlyMap<string, number>;
    recordOf(computeId: string): ComputeRecord | undefined;
  },
): JudgedCompute[] {
  return selected.map((compute) => {
    const { computeId, startedAtMs } = compute;
    const verdict = sinceLowered.get(computeId) ?? verdicts.get(computeId);
    const isAwake = compute.state === 'active' && !hasOperationRunning(compute, facts.recordOf(computeId));
    return {
      computeId,
      startedAtMs,
      loweredAtMs: facts.loweredAtMs.get(computeId),
      state: isAwake ? (verdict?.state ?? 'unknown') : undefined,
    };
  });
}
