import type { Compute, ComputeSettings } from '../compute/compute.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';

/** The number of clients that wanted a connection at an instant (milliseconds since the epoch). */
export interface RecordedCount {
  atMs: number;
  connections: number;
  /** The server's `max_connections` at that time, if recorded. */
  maxConnections?: number;
}

/** The recording of one compute, and the state at its start. */
export interface Recording {
  /** The compute with its size and timeout at the start of the recording. */
  compute: Compute;
  /** The settings before ebb: where no schedule applies, headroom lowers a raised size to these. */
  baseline: ComputeSettings;
  profile: ConnectionProfile;
  /** Oldest first; at least one, and at most one per instant. */
  counts: readonly RecordedCount[];
}

const DEFAULT_INTERVAL_MS = 60_000;

/** The longest interval that a source may have. */
const LONGEST_INTERVAL_MS = 24 * 3_600_000;

/** The median interval between counts, in milliseconds. With fewer than two intervals, the default: a single one may be a gap. */
export function countIntervalMs({ counts }: Recording): number {
  const intervals = counts.slice(1).map(({ atMs }, index) => atMs - (counts[index]?.atMs ?? atMs));
  if (intervals.length < 2) return Math.min(DEFAULT_INTERVAL_MS, ...intervals);
  const median = intervals.sort((a, b) => a - b)[Math.floor(intervals.length / 2)] ?? DEFAULT_INTERVAL_MS;
  return Math.min(median, LONGEST_INTERVAL_MS);
}

/** The end of a recording: one interval after the last count, which is valid at least that long. Milliseconds since the epoch. */
export function recordingEndMs(recording: Recording): number {
  return (recording.counts.at(-1)?.atMs ?? 0) + countIntervalMs(recording);
}
