/** Keeps track of the boundary reconciles in progress, to which other work yields. Instants are milliseconds since the epoch. */
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { herdInstants, type ReadyWaves } from '../../domain/policy/waves.ts';
import type { CurrentRules } from '../rules.ts';

/** The number of this daemon's unfinished boundary reconciles, by instant and account; undefined for an unknown account. */
export type BoundaryReconciles = Map<number, Map<string | undefined, number>>;

interface WithBoundaryReconciles {
  boundaryReconciles: BoundaryReconciles;
}

/** With more computes than this at one instant, background reads would take too much of the minute's rate limit. */
const HERD_SIZE = 100;

/**
 * For this long before and after a herd's instant, in milliseconds, nothing is read in the background. Waves of a herd can be a minute apart,
 * and each needs the rate limit of the whole minute before it: that makes two minutes, and a reserve.
 */
export const HERD_NEAR_MS = 135_000;

/** How long a boundary reconcile may hold up other work, in milliseconds. One of an account whose key is refused may itself take longer. */
const MAX_BOUNDARY_MS = 600_000;

/** Counts a boundary reconcile that begins; {@link endAtBoundary} must follow. */
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

/** Counts the unfinished boundary reconciles of an instant, over all accounts. */
export function countAtBoundary({ boundaryReconciles }: WithBoundaryReconciles, instantMs: number): number {
  return [...(boundaryReconciles.get(instantMs)?.values() ?? [])].reduce((sum, count) => sum + count, 0);
}

/** Returns true while a boundary of this account (of any account if absent) is being handled, for at most `forMs` milliseconds. */
export function isAtBoundary(
  { boundaryReconciles }: WithBoundaryReconciles,
  nowMs: number,
  { account, forMs = MAX_BOUNDARY_MS }: { account?: string; forMs?: number } = {},
): boolean {
  return [...boundaryReconciles].some(([instantMs, accounts]) => {
    const isNow = instantMs <= nowMs && nowMs - instantMs < forMs;
    return isNow && (account === undefined || accounts.has(account));
  });
}

export interface HerdDeps {
  fleet: { evaluatedComputes(): Iterable<Pick<EvaluatedCompute, 'compute' | 'nextBoundaryMs'>> };
  rules: CurrentRules;
}

/** A boundary of more than {@link HERD_SIZE} computes of an account, with its waves. Instants are milliseconds since the epoch. */
export interface Herd {
  account: string;
  firstMs: number;
  lastMs: number;
  computes: number;
}

/** Returns the herds among the computes whose next boundary is between these instants (milliseconds since the epoch). */
export function herdsBetween({ fleet, rules }: HerdDeps, fromMs: number, untilMs: number): Herd[] {
  const counts = new Map<string, Map<number, number>>();
  for (const { compute, nextBoundaryMs = Number.NaN } of fleet.evaluatedComputes()) {
    if (!(nextBoundaryMs >= fromMs && nextBoundaryMs <= untilMs)) continue;
    const ofAccount = counts.get(compute.account) ?? new Map<number, number>();
    counts.set(compute.account, ofAccount.set(nextBoundaryMs, (ofAccount.get(nextBoundaryMs) ?? 0) + 1));
  }
  return [...counts].flatMap(([account, ofAccount]) => herdsOf(rules.current.policies.readyWaves, account, ofAccount));
}

function herdsOf(readyWaves: readonly ReadyWaves[], account: string, counts: ReadonlyMap<number, number>): Herd[] {
  const herds = new Map<number, Herd>();
  for (const instantMs of counts.keys()) {
    const instants = [...herdInstants(readyWaves, account, instantMs)].filter((instant) => counts.has(instant));
    const [firstMs, lastMs] = [Math.min(...instants), Math.max(...instants)];
    const computes = instants.reduce((sum, instant) => sum + (counts.get(instant) ?? 0), 0);
    if (computes > HERD_SIZE) herds.set(firstMs, { account, firstMs, lastMs, computes });
  }
  return [...herds.values()];
}

/** Returns true near a herd of the account ({@link HERD_NEAR_MS}), and while one of its boundaries is being handled. */
export function isHerdNear(
  deps: HerdDeps & { fleet: WithBoundaryReconciles },
  nowMs: number,
  account: string,
): boolean {
  if (isAtBoundary(deps.fleet, nowMs, { account })) return true;
  return herdsBetween(deps, nowMs - HERD_NEAR_MS, nowMs + HERD_NEAR_MS).some((herd) => herd.account === account);
}
