import type { Recording } from '../../domain/backtest/recording.ts';
import { COMPUTE_SIZES_CU } from '../../domain/compute/compute-units.ts';
import { few } from './few.ts';

/** What recordings themselves say against the figures, in a line for each kind of doubt. */
export function doubtsOf(recordings: readonly Recording[]): string[] {
  return [...fullOnes(recordings), ...strangeOnes(recordings)];
}

function fullOnes(recordings: readonly Recording[]): string[] {
  const all = recordings.map((one) => ({ ...one, times: timesFull(one) })).filter(({ times }) => times > 0);
  if (all.length === 0) return [];
  const times = all.reduce((sum, one) => sum + one.times, 0);
  const counts = all.reduce((sum, one) => sum + one.counts.length, 0);
  const who = `${few(all.map(idOf))} ${all.length === 1 ? 'was' : 'were'}`;
  return [`${who} full at ${times} of ${counts} counts: more may have wanted to connect than was recorded`];
}

/** A line for each profile that does not fit. */
function strangeOnes(recordings: readonly Recording[]): string[] {
  const byProfile = new Map<string, { ids: string[]; sizes: Set<number> }>();
  for (const recording of recordings) {
    const sizes = strangeSizes(recording);
    if (sizes.length === 0) continue;
    const known = byProfile.get(recording.profile.name) ?? { ids: [], sizes: new Set() };
    byProfile.set(recording.profile.name, known);
    known.ids.push(idOf(recording));
    for (const max of sizes) known.sizes.add(max);
  }
  return [...byProfile].map(([profile, { ids, sizes }]) => {
    const had = `${few(ids)} had max_connections ${few([...sizes].map(String))}`;
    return `${had}, which the profile ${profile} gives at no size: is it the right one?`;
  });
}

function timesFull({ counts, profile }: Recording): number {
  return counts.filter(({ connections, maxConnections: max }) => {
    return max !== undefined && connections >= max - profile.reserved;
  }).length;
}

function strangeSizes({ counts, profile }: Recording): number[] {
  const possible = new Set(COMPUTE_SIZES_CU.map((cu) => profile.maxConnections({ minCu: cu, maxCu: cu })));
  const sizes = new Set(counts.flatMap(({ maxConnections }) => maxConnections ?? []));
  return [...sizes].filter((max) => !possible.has(max));
}

function idOf({ compute }: Recording): string {
  return compute.computeId;
}
