/** Counts of a compute's connections. Instants are milliseconds since the epoch. */
import type { Compute } from '../compute/compute.ts';
import { MINUTE_MS } from '../time/units.ts';

/** A count of client connections, or the highest of several counts. */
export interface ConnectionSample {
  atMs: number;
  connections: number;
  /** For the highest of several counts: the time of the first, with no gap since. */
  sinceMs?: number;
  /** How long the count is valid, if its source is queried less often than usual. */
  validForMs?: number;
  /** The `max_connections` that the compute reported; it replaces the profile's value for the present size. */
  maxConnections?: number;
}

/** Counts by the name of the source, oldest first. */
export type ConnectionHistory = ReadonlyMap<string, readonly ConnectionSample[]>;

/** An older count is stale. Prometheus looks back five minutes, too. */
export const STALE_AFTER_MS = 5 * MINUTE_MS;

function isStale(sample: ConnectionSample, instantMs: number): boolean {
  return instantMs - sample.atMs > validityOf(sample);
}

/** The connections of a compute at an instant, by one source. */
export interface ConnectionView {
  now: number;
  /** The highest count in the stabilisation window. */
  peak: number;
  /** False if the compute was awake in a part of the window without counts. */
  isWholeWindowKnown: boolean;
  reportedMaxConnections?: number;
}

/** Evaluates counts at an instant; undefined if they are missing or stale. An idle compute has no connections. */
export function viewConnections(
  samples: readonly ConnectionSample[] | undefined,
  compute: Compute,
  { instantMs, windowMs }: { instantMs: number; windowMs: number },
): ConnectionView | undefined {
  const past = (samples ?? []).filter(({ atMs }) => atMs <= instantMs);
  const inWindow = past.filter(({ atMs }) => atMs >= instantMs - windowMs);
  const latest = past.at(-1);
  const isIdle = compute.state === 'idle';
  if (!isIdle && (latest === undefined || isStale(latest, instantMs))) return undefined;
  const now = isIdle ? 0 : (latest?.connections ?? 0);
  const awakeSinceMs = Math.max(instantMs - windowMs, compute.startedAtMs ?? Number.NEGATIVE_INFINITY);
  return {
    now,
    peak: Math.max(now, ...inWindow.map(({ connections }) => connections)),
    isWholeWindowKnown: isIdle || !hasGap(inWindow, awakeSinceMs),
    ...(!isIdle && latest?.maxConnections !== undefined && { reportedMaxConnections: latest.maxConnections }),
  };
}

/** True if there is a gap between `sinceMs` and the last count, in which a peak may have been missed. */
function hasGap(inWindow: readonly ConnectionSample[], sinceMs: number): boolean {
  let knownUntilMs = sinceMs;
  for (const sample of inWindow) {
    if ((sample.sinceMs ?? sample.atMs) - knownUntilMs > validityOf(sample)) return true;
    knownUntilMs = Math.max(knownUntilMs, sample.atMs);
  }
  return false;
}

/** The latest count of any source; undefined if it is stale. A sleeping compute has no clients. */
export function connectionsAt(
  history: ConnectionHistory | undefined,
  { state }: Compute,
  instantMs: number,
): number | undefined {
  if (state === 'idle') return 0;
  const recent = [...(history?.values() ?? [])]
    .flatMap((samples) => samples.findLast(({ atMs }) => atMs <= instantMs) ?? [])
    .filter((sample) => !isStale(sample, instantMs));
  return recent.toSorted((a, b) => b.atMs - a.atMs)[0]?.connections;
}

/** How long a count is valid, in milliseconds. */
export function validityOf({ validForMs = STALE_AFTER_MS }: ConnectionSample): number {
  return validForMs;
}
