import type { Compute, ComputeSettings } from '../compute/compute.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';

/** How many clients wanted to be connected at an instant, milliseconds since the epoch. */
export interface RecordedCount {
  atMs: number;
  connections: number;
  /** What the server accepted then, if that was recorded. */
  maxConnections?: number;
}

/** What was recorded of one compute, and from what a replay of it starts. */
export interface Recording {
  /** Its size and timeout when the recording begins. */
  compute: Compute;
  /** What it had before ebb: where a raise goes back to that no schedule speaks of. */
  baseline: ComputeSettings;
  profile: ConnectionProfile;
  /** Oldest first, at least one, no two of the same instant. */
  counts: readonly RecordedCount[];
}

const USUAL_EVERY_MS = 60_000;

/** No source is asked less often. */
const LONGEST_EVERY_MS = 24 * 3_600_000;

/** How often it was counted: the median of the intervals, in milliseconds. One interval by itself may be a gap. */
export function intervalOf({ counts }: Recording): number {
  const intervals = counts.slice(1).map(({ atMs }, index) => atMs - (counts[index]?.atMs ?? atMs));
  if (intervals.length < 2) return Math.min(USUAL_EVERY_MS, ...intervals);
  const median = intervals.sort((a, b) => a - b)[Math.floor(intervals.length / 2)] ?? USUAL_EVERY_MS;
  return Math.min(median, LONGEST_EVERY_MS);
}

/** Where it ends: an interval after the last count, since that holds at least so long. Milliseconds since the epoch. */
export function endOf(recording: Recording): number {
  return (recording.counts.at(-1)?.atMs ?? 0) + intervalOf(recording);
}
