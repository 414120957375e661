/**
 * Waves spread the raises of many computes (the herd) over the time before an instant. They follow from the herd and the rate limit, not
 * from a policy, so they are passed as data along with the policies. Instants are milliseconds since the epoch.
 */
import type { Compute } from '../compute/compute.ts';
import { hashFraction } from './select.ts';

export const WAVE_MS = 15_000;
const MAX_WAVES = 40;
/** The longest lead of a wave, in milliseconds. */
export const LONGEST_WAVE_LEAD_MS = MAX_WAVES * WAVE_MS;

/** The waves of an account for one opening of windows with `ready: true`. */
export interface ReadyWaves {
  account: string;
  opensAtMs: number;
  /** The hash of the policy set for which the waves were computed. */
  setHash: string;
  /** The earliest first. Empty if nothing is raised early. */
  waves: readonly Wave[];
}

export interface Wave {
  /** The raises of the wave begin this long before the opening. */
  leadMs: number;
  computes: number;
  /** The position of its last compute. */
  last: HerdPosition;
}

/** A compute's position in the herd: higher priorities come first, then smaller hashes. */
export interface HerdPosition {
  priority: number;
  /** A hash of the compute's id in [0, 1). */
  part: number;
}

export function compareHerdPositions(a: HerdPosition, b: HerdPosition): number {
  return b.priority - a.priority || a.part - b.part;
}

export function herdPosition(priority: number, { computeId }: Pick<Compute, 'computeId'>): HerdPosition {
  return { priority, part: hashFraction(`ready ${computeId}`) };
}

/** The wave of a compute; the earliest has number 1, `of` is their count. */
export interface ComputeWave {
  leadMs: number;
  number: number;
  of: number;
}

/**
 * The wave in which a policy of this priority raises the compute: the last one for a compute that joins after the herd was counted. Undefined if the
 * opening's waves are unknown.
 */
export function waveOf(
  readyWaves: readonly ReadyWaves[],
  { compute, priority, opensAtMs }: { compute: Compute; priority: number; opensAtMs: number },
): ComputeWave | undefined {
  const { account } = compute;
  const waves = readyWaves.find((herd) => herd.opensAtMs === opensAtMs && herd.account === account)?.waves;
  if (!waves) return undefined;
  const position = herdPosition(priority, compute);
  const found = waves.findIndex(({ last }) => compareHerdPositions(position, last) <= 0);
  const index = found < 0 ? waves.length - 1 : found;
  return { leadMs: waves[index]?.leadMs ?? 0, number: index + 1, of: waves.length };
}

/** The instants at which the waves begin, the earliest first. */
export function waveInstants({ opensAtMs, waves }: Pick<ReadyWaves, 'opensAtMs' | 'waves'>): number[] {
  return waves.map(({ leadMs }) => opensAtMs - leadMs);
}

/** The instants of all waves of the herd to which this instant belongs; only this instant if it belongs to none. */
export function herdInstants(
  readyWaves: readonly ReadyWaves[],
  account: string,
  instantMs: number,
): ReadonlySet<number> {
  const herds = readyWaves.filter((herd) => herd.account === account).map(waveInstants);
  return new Set(herds.find((instants) => instants.includes(instantMs)) ?? [instantMs]);
}

/** Rounds a lead up to whole waves, within the allowed number, in milliseconds. */
export function leadOfWaves(ms: number): number {
  return Math.min(MAX_WAVES, Math.max(1, Math.ceil(ms / WAVE_MS))) * WAVE_MS;
}
