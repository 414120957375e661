import type { Compute, ComputeSettings } from '../compute/compute.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';

/** Clients that wanted to be connected at an instant, milliseconds since the epoch. */
export interface RecordedCount {
  atMs: number;
  connections: number;
  /** The limit that the server had then, if recorded. */
  maxConnections?: number;
}

/** The recording of one compute, and the state at its start. */
export interface Recording {
  /** Its size and timeout when the recording begins. */
  compute: Compute;
  /** Its settings before ebb: a raise goes back to them where no schedule applies. */
  baseline: ComputeSettings;
  profile: ConnectionProfile;
  /** Oldest first, at least one, no two of the same instant. */
  counts: readonly RecordedCount[];
}

const USUAL_EVERY_MS = 60_000;

/** No source is asked less often. */
const LONGEST_EVERY_MS = 24 * 3_600_000;

/** The median interval between counts, in milliseconds. A single interval may be a gap. */
export function intervalOf({ counts }: Recording): number {
  const intervals = counts.slice(1).map(({ atMs }, index) => atMs - (counts[index]?.atMs ?? atMs));
  if (intervals.length < 2) return Math.min(USUAL_EVERY_MS, ...intervals);
  const median = intervals.sort((a, b) => a - b)[Math.floor(intervals.length / 2)] ?? USUAL_EVERY_MS;
  return Math.min(median, LONGEST_EVERY_MS);
}

/** The end of a recording: an interval after the last count, since a count holds at least so long. Milliseconds since the epoch. */
export function endOf(recording: Recording): number {
  return (recording.counts.at(-1)?.atMs ?? 0) + intervalOf(recording);
}
