/**
 * Waves: of a herd that one instant would raise, which computes begin how long before it. How many there are follows from the herd and the
 * rate limit, not from a policy; so waves come with the policies as data. Instants are milliseconds since the epoch.
 */
import type { Compute } from '../compute/compute.ts';
import { partOf } from './select.ts';

export const WAVE_MS = 15_000;
const MOST_WAVES = 40;
/** No wave begins earlier than this long before the start. */
export const LONGEST_WAVE_LEAD_MS = MOST_WAVES * WAVE_MS;

/** Decided for a set of policies and an instant: in which computes a window with `ready: true` is ready by its start. */
export interface ReadyWaves {
  account: string;
  /** The opening of the windows. */
  opensAtMs: number;
  /** Of the policies by which they were found. */
  setHash: string;
  /** The earliest first. None: nothing is raised early. */
  waves: readonly Wave[];
}

export interface Wave {
  /** Its raises begin this long before the start. */
  leadMs: number;
  computes: number;
  /** The last compute that is in it. */
  last: PlaceInHerd;
}

/** Policies with a higher priority come first, and of one priority the smaller hash of the compute's id. */
export interface PlaceInHerd {
  priority: number;
  /** From 0 to less than 1. */
  part: number;
}

export function comparePlaces(a: PlaceInHerd, b: PlaceInHerd): number {
  return b.priority - a.priority || a.part - b.part;
}

export function placeInHerd(priority: number, { computeId }: Pick<Compute, 'computeId'>): PlaceInHerd {
  return { priority, part: partOf(`ready ${computeId}`) };
}

/** The wave of a compute. Its number is 1 for the earliest. */
export interface OwnWave {
  leadMs: number;
  number: number;
  of: number;
}

/** The wave in which a policy of this priority raises the compute; undefined if the waves of that instant are not known. */
export function waveOf(
  known: readonly ReadyWaves[],
  { compute, priority, opensAtMs }: { compute: Compute; priority: number; opensAtMs: number },
): OwnWave | undefined {
  const waves = known.find((one) => one.opensAtMs === opensAtMs && one.account === compute.account)?.waves;
  if (!waves) return undefined;
  const place = placeInHerd(priority, compute);
  const found = waves.findIndex(({ last }) => comparePlaces(place, last) <= 0);
  const index = found < 0 ? waves.length - 1 : found;
  return { leadMs: waves[index]?.leadMs ?? 0, number: index + 1, of: waves.length };
}

/** The starts of the waves, the earliest first. */
export function waveInstants({ opensAtMs, waves }: Pick<ReadyWaves, 'opensAtMs' | 'waves'>): number[] {
  return waves.map(({ leadMs }) => opensAtMs - leadMs);
}

/** The instants of the waves of the same herd, which are all read before the first of them. Otherwise this one alone. */
export function herdInstants(known: readonly ReadyWaves[], account: string, instantMs: number): ReadonlySet<number> {
  const herds = known.filter((one) => one.account === account).map(waveInstants);
  return new Set(herds.find((instants) => instants.includes(instantMs)) ?? [instantMs]);
}

/** The number of waves in a lead of this length. */
export function leadOfWaves(ms: number): number {
  return Math.min(MOST_WAVES, Math.max(1, Math.ceil(ms / WAVE_MS))) * WAVE_MS;
}
