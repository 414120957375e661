/** Boundary reconciles in progress: other work yields to them. Instants are milliseconds since the epoch. */
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { herdInstants } from '../../domain/policy/waves.ts';
import type { CurrentRules } from '../rules.ts';

/** By instant and account, how many projects this daemon has still to take over that boundary. */
export type BoundaryReconciles = Map<number, Map<string | undefined, number>>;

interface AtBoundary {
  boundaryReconciles: BoundaryReconciles;
}

/** This many computes need more than a minute's limit leaves beside the background. */
const HERD = 100;

/** Waves of one herd can be a minute apart, and each needs the limit of the whole minute before it. Milliseconds. */
const HERD_NEAR_MS = 135_000;

/** A boundary reconcile that waits longer, such as for a refused account, no longer holds up other work. Milliseconds. */
const LONGEST_AT_BOUNDARY_MS = 600_000;

/** Counts one more project of the account, undefined where that is not known. */
export function beginAtBoundary(
  { boundaryReconciles }: AtBoundary,
  instantMs: number,
  account: string | undefined,
): void {
  const accounts = boundaryReconciles.get(instantMs) ?? new Map<string | undefined, number>();
  boundaryReconciles.set(instantMs, accounts.set(account, (accounts.get(account) ?? 0) + 1));
}

/** Counts one less; the same account as when it began. */
export function endAtBoundary(
  { boundaryReconciles }: AtBoundary,
  instantMs: number,
  account: string | undefined,
): void {
  const accounts = boundaryReconciles.get(instantMs);
  const left = (accounts?.get(account) ?? 0) - 1;
  if (left > 0) accounts?.set(account, left);
  else accounts?.delete(account);
  if (accounts?.size === 0) boundaryReconciles.delete(instantMs);
}

/** The number of projects, of all accounts, whose reconcile at this instant is not done. */
export function countAtBoundary({ boundaryReconciles }: AtBoundary, instantMs: number): number {
  return [...(boundaryReconciles.get(instantMs)?.values() ?? [])].reduce((sum, count) => sum + count, 0);
}

/** Is a boundary being handled now, for this account or any? Other daemons of the group do so too. */
export function isAtBoundary({ boundaryReconciles }: AtBoundary, nowMs: number, account?: string): boolean {
  return [...boundaryReconciles].some(([instantMs, accounts]) => {
    const isNow = instantMs <= nowMs && nowMs - instantMs < LONGEST_AT_BOUNDARY_MS;
    return isNow && (account === undefined || accounts.has(account));
  });
}

interface HerdDeps {
  fleet: AtBoundary & { evaluatedComputes(): Iterable<Pick<EvaluatedCompute, 'compute' | 'nextBoundaryMs'>> };
  rules: CurrentRules;
}

/**
 * True before a boundary of this many computes of the account, and while some are being handled: then nothing is read in the background.
 * Other instants count apart, except for waves of one herd: spread boundaries leave room between them.
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
    return herd.reduce((sum, instant) => sum + (near.get(instant) ?? 0), 0) > HERD;
  });
}
