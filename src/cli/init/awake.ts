import { type Compute, NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { ascending } from '../../domain/sorted.ts';

/** Computes that are awake now, those first that have been so for longest; one whose start is not known comes last. */
export function awakeLongest(computes: readonly Compute[]): Compute[] {
  const sinceMs = ({ startedAtMs = Number.POSITIVE_INFINITY }: Compute) => startedAtMs;
  return computes
    .filter(({ state }) => state === 'active')
    .toSorted((one, two) => ascending(sinceMs(one), sinceMs(two)));
}

/** The fleet in figures. */
export interface Totals {
  projects: number;
  computes: number;
  active: number;
  neverSuspend: number;
  /** What all computes would have together, awake, at their minimum and at their maximum, in CU. */
  minCu: number;
  maxCu: number;
}

export function totalsOf(computes: readonly Compute[], projects: number): Totals {
  const sum = (pick: (compute: Compute) => number) => computes.reduce((all, compute) => all + pick(compute), 0);
  return {
    projects,
    computes: computes.length,
    active: sum(({ state }) => (state === 'active' ? 1 : 0)),
    neverSuspend: sum(({ suspendTimeoutSeconds }) => (suspendTimeoutSeconds === NEVER_SUSPENDS ? 1 : 0)),
    minCu: sum(({ minCu }) => minCu),
    maxCu: sum(({ maxCu }) => maxCu),
  };
}
