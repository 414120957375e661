import { counted, countedComputes } from '../../common/names.ts';
import { sizeOf } from '../../domain/compute/compute.ts';
import { guardsOf } from '../../domain/evaluate/evaluate.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { isLower } from '../../domain/records/lowerings.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Outlook } from './outlook.ts';

/** The lowerings of sizes that a guard may hold back, if the computes are awake then. */
interface GuardedLowerings {
  guard: string;
  lowerings: number;
  computes: number;
  firstAtMs: number;
}

/** Sums for each guard, in the order of its first lowering. */
function guardedLowerings(outlooks: readonly Outlook[], policies: CompiledPolicies): GuardedLowerings[] {
  const found = new Map<string, GuardedLowerings>();
  for (const { compute, segments } of outlooks) {
    const lowered = segments.filter((segment, index) => {
      const before = segments[index - 1];
      return before !== undefined && isLower(sizeOf(segment), sizeOf(before));
    });
    const [first] = lowered;
    if (!first) continue;
    for (const { name: guard } of guardsOf(policies, compute, first.fromMs)) {
      const sum = found.get(guard) ?? { guard, lowerings: 0, computes: 0, firstAtMs: first.fromMs };
      found.set(guard, {
        guard,
        lowerings: sum.lowerings + lowered.length,
        computes: sum.computes + 1,
        firstAtMs: Math.min(sum.firstAtMs, first.fromMs),
      });
    }
  }
  return [...found.values()].toSorted((a, b) => a.firstAtMs - b.firstAtMs);
}

export function guardedJson(outlooks: readonly Outlook[], policies: CompiledPolicies) {
  return guardedLowerings(outlooks, policies).map(({ firstAtMs, ...one }) => ({
    ...one,
    first_at: isoInstant(firstAtMs),
  }));
}

export function guardedLines(outlooks: readonly Outlook[], policies: CompiledPolicies): string[] {
  return guardedLowerings(outlooks, policies).map(
    ({ guard, lowerings, computes, firstAtMs }) =>
      `Guard ${guard} may hold back ${counted(lowerings, 'lowering')} of ${countedComputes(computes)}, if awake: the first at ${isoInstant(firstAtMs)}.`,
  );
}
