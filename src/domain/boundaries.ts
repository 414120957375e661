import type { CompiledPolicies } from './compiled-policies.ts';
import type { Compute, ComputeSettings } from './compute.ts';
import { type Decision, decide } from './decide.ts';

/** A boundary further ahead than this is found later, when it is nearer. Two years, in milliseconds. */
export const BOUNDARY_HORIZON_MS = 2 * 366 * 24 * 60 * 60 * 1000;

export interface BoundaryInput {
  policies: CompiledPolicies;
  compute: Compute;
  baseline: ComputeSettings | undefined;
}

/**
 * The next instant strictly after `afterMs` at which any desired field of the compute changes; undefined if none does within
 * {@link BOUNDARY_HORIZON_MS}. It goes from one change of a window to the next, never minute by minute.
 */
export function nextBoundary(input: BoundaryInput, afterMs: number): number | undefined {
  const before = decide({ ...input, instantMs: afterMs });
  let instantMs = nextWindowChange(input, afterMs);
  while (instantMs !== undefined && instantMs - afterMs <= BOUNDARY_HORIZON_MS) {
    if (!sameWishes(before, decide({ ...input, instantMs }))) return instantMs;
    instantMs = nextWindowChange(input, instantMs);
  }
  return undefined;
}

/** True if what the compute should have changes exactly at this instant. */
export function isBoundary(input: BoundaryInput, instantMs: number): boolean {
  return !sameWishes(decide({ ...input, instantMs: instantMs - 1 }), decide({ ...input, instantMs }));
}

/** Also of policies for which the compute is still too young: it comes of age before some later change. */
function nextWindowChange({ policies, compute }: BoundaryInput, afterMs: number): number | undefined {
  let next: number | undefined;
  for (const index of policies.set.policies.keys()) {
    if (!policies.selects(index, compute, Number.POSITIVE_INFINITY)) continue;
    const change = policies.nextChangeAfter(index, afterMs);
    if (change !== undefined && (next === undefined || change < next)) next = change;
  }
  return next;
}

function sameWishes(a: Decision, b: Decision): boolean {
  return (['desired', 'enforced'] as const).every(
    (which) =>
      a[which].size?.minCu === b[which].size?.minCu &&
      a[which].size?.maxCu === b[which].size?.maxCu &&
      a[which].suspendTimeoutSeconds === b[which].suspendTimeoutSeconds,
  );
}
