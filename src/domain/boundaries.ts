import type { CompiledPolicies } from './compiled-policies.ts';
import { type Compute, type ComputeSettings, sameSize } from './compute.ts';
import { type Decision, decide } from './decide.ts';
import type { FieldGroup } from './desired.ts';
import type { Hold } from './holds.ts';

/** A boundary further ahead than this is found later, when it is nearer. Two years, in milliseconds. */
export const BOUNDARY_HORIZON_MS = 2 * 366 * 24 * 60 * 60 * 1000;

/** A boundary further back than this need not be told from one that never was: longer than any deadline. 35 days. */
const BACKWARD_HORIZON_MS = 35 * 24 * 60 * 60 * 1000;

/** Boundaries are those of policies and holds alone: what is counted of connections is not known beforehand. */
export interface BoundaryInput {
  policies: CompiledPolicies;
  compute: Compute;
  baseline: ComputeSettings | undefined;
  holds?: readonly Hold[] | undefined;
}

/**
 * The next instant strictly after `afterMs` at which any desired field of the compute changes (or those of one group), or at
 * which a restart becomes possible; undefined if none does within {@link BOUNDARY_HORIZON_MS}. It goes from one change of a
 * window to the next, never minute by minute.
 */
export function nextBoundary(input: BoundaryInput, afterMs: number, group?: FieldGroup): number | undefined {
  const before = wishesAt(input, afterMs);
  let instantMs = nextChange(input, afterMs);
  while (instantMs !== undefined && instantMs - afterMs <= BOUNDARY_HORIZON_MS) {
    if (!sameWishes(before, wishesAt(input, instantMs), group)) return instantMs;
    instantMs = nextChange(input, instantMs);
  }
  return undefined;
}

/**
 * The latest instant at or before `untilMs` at which what is wanted of a group became what it is; −Infinity if that is further
 * back than any deadline.
 */
export function lastBoundary(input: BoundaryInput, untilMs: number, group: FieldGroup): number {
  const now = wishesAt(input, untilMs);
  let instantMs = lastChange(input, untilMs);
  while (untilMs - instantMs <= BACKWARD_HORIZON_MS) {
    if (!sameWishes(now, wishesAt(input, instantMs - 1), group)) return instantMs;
    instantMs = lastChange(input, instantMs - 1);
  }
  return Number.NEGATIVE_INFINITY;
}

/** True if what the compute should have changes exactly at this instant. */
export function isBoundary(input: BoundaryInput, instantMs: number): boolean {
  return !sameWishes(wishesAt(input, instantMs - 1), wishesAt(input, instantMs));
}

function wishesAt({ policies, compute, baseline, holds }: BoundaryInput, instantMs: number): Decision {
  return decide({ policies, compute, baseline, holds, instantMs });
}

function nextChange(input: BoundaryInput, afterMs: number): number | undefined {
  const ahead = otherChanges(input).filter((ms) => ms > afterMs);
  for (const index of input.policies.selecting(input.compute)) {
    const change = input.policies.nextChangeAfter(index, afterMs);
    if (change !== undefined) ahead.push(change);
  }
  return ahead.length === 0 ? undefined : Math.min(...ahead);
}

function lastChange(input: BoundaryInput, untilMs: number): number {
  const past = otherChanges(input).filter((ms) => ms <= untilMs);
  for (const index of input.policies.selecting(input.compute))
    past.push(input.policies.lastChangeUntil(index, untilMs));
  return Math.max(Number.NEGATIVE_INFINITY, ...past);
}

function otherChanges(input: BoundaryInput): number[] {
  const { policies, compute, holds = [] } = input;
  const own = holds.filter(({ computeId }) => computeId === compute.computeId);
  // Of a policy for which the compute is still too young, the coming of age is a change.
  const ages = policies.selecting(compute).map((index) => policies.set.policies[index]?.select.minAgeMs ?? 0);
  return [
    ...own.flatMap(({ createdAtMs, expiresAtMs }) => [createdAtMs, expiresAtMs]),
    ...new Set(ages.map((ageMs) => compute.createdAtMs + ageMs)),
  ];
}

function sameWishes(a: Decision, b: Decision, group?: FieldGroup): boolean {
  if (group !== undefined) return sameGroup(a, b, group);
  return sameGroup(a, b, 'size') && sameGroup(a, b, 'suspend_timeout') && restartOf(a) === restartOf(b);
}

function sameGroup(a: Decision, b: Decision, group: FieldGroup): boolean {
  return (['desired', 'enforced'] as const).every((which) =>
    group === 'size'
      ? sameSize(a[which].size, b[which].size)
      : a[which].suspendTimeoutSeconds === b[which].suspendTimeoutSeconds,
  );
}

/** Which opening of a window for restarts it is. */
function restartOf({ restart }: Decision): string | undefined {
  return restart && `${restart.policyIndex} ${restart.openSinceMs}`;
}
