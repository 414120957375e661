/** Boundary reconciles in progress: other work yields to them. Instants are milliseconds since the epoch. */
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { herdInstants } from '../../domain/policy/waves.ts';
import type { CurrentRules } from '../rules.ts';

/** The number of this daemon's unfinished boundary reconciles, by instant and account; undefined for an unknown account. */
export type BoundaryReconciles = Map<number, Map<string | undefined, number>>;

interface WithBoundaryReconciles {
  boundaryReconciles: BoundaryReconciles;
}

/** With more computes than this at one instant, background reads would take too much of the minute's rate limit. */
const HERD_SIZE = 100;

/** How long before and after a herd's instant nothing is read in the background: each wave needs the limit of the minute before it. */
const HERD_NEAR_MS = 135_000;

/** How long a boundary reconcile may hold up other work, in milliseconds; one for a refused account waits longer. */
const MAX_BOUNDARY_MS = 600_000;

export function beginAtBoundary(
  { boundaryReconciles }: WithBoundaryReconciles,
  instantMs: number,
  account: string | undefined,
): void {
  const accounts = boundaryReconciles.get(instantMs) ?? new Map<string | undefined, number>();
  boundaryReconciles.set(instantMs, accounts.set(account, (accounts.get(account) ?? 0) + 1));
}

export function endAtBoundary(
  { boundaryReconciles }: WithBoundaryReconciles,
  instantMs: number,
  account: string | undefined,
): void {
  const accounts = boundaryReconciles.get(instantMs);
  const remaining = (accounts?.get(account) ?? 0) - 1;
  if (remaining > 0) accounts?.set(account, remaining);
  else accounts?.delete(account);
  if (accounts?.size === 0) boundaryReconciles.delete(instantMs);
}

/** Counts the unfinished boundary reconciles of an instant, of all accounts. */
export function countAtBoundary({ boundaryReconciles }: WithBoundaryReconciles, instantMs: number): number {
  return [...(boundaryReconciles.get(instantMs)?.values() ?? [])].reduce((sum, count) => sum + count, 0);
}

/** Returns true while a boundary is being handled, for this account or any. */
export function isAtBoundary({ boundaryReconciles }: WithBoundaryReconciles, nowMs: number, account?: string): boolean {
  return [...boundaryReconciles].some(([instantMs, accounts]) => {
    const isNow = instantMs <= nowMs && nowMs - instantMs < MAX_BOUNDARY_MS;
    return isNow && (account === undefined || accounts.has(account));
  });
}

interface HerdDeps {
  fleet: WithBoundaryReconciles & {
    evaluatedComputes(): Iterable<Pick<EvaluatedCompute, 'compute' | 'nextBoundaryMs'>>;
  };
  rules: CurrentRules;
}

/**
 * Returns true shortly before and after a boundary of more than {@link HERD_SIZE} computes of the account, and while one is being handled:
 * then nothing is read in the background. The waves of a herd count together, other instants one by one.
 */
export function isHerdNear({ fleet, rules }: HerdDeps, nowMs: number, account: string): boolean {
  if (isAtBoundary(fleet, nowMs, account)) return true;
  const { readyWaves } = rules.current.policies;
  const near = new Map<number, number>();
  for (const { compute, nextBoundaryMs = Number.NaN } of fleet.evaluatedComputes()) {
    if (compute.account !== account || !(Math.abs(nextBoundaryMs - nowMs) <= HERD_NEAR_MS)) continue;
    near.set(nextBoundaryMs, (near.get(nextBoundaryMs) ?? 0) + 1);
  }
  return [...near.keys()].some((instantMs) => {
    const herd = [...herdInstants(readyWaves, account, instantMs)];
    return herd.reduce((sum, instant) => sum + (near.get(instant) ?? 0), 0) > HERD_SIZE;
  });
}
