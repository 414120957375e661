/** Counts of a compute's connections. Instants are milliseconds since the epoch. */
import type { Compute } from '../compute/compute.ts';

/** One count of client connections, or the highest of several. */
export interface ConnectionSample {
  atMs: number;
  connections: number;
  /** For the highest of several counts: since when, without a gap. */
  sinceMs?: number;
  /** Validity of the count, if its source is asked less often than others. */
  validForMs?: number;
  /** The limit that the compute itself reports; it replaces the table for the present. */
  maxConnections?: number;
}

/** Counts by the name of their source, oldest first. */
export type ConnectionHistory = ReadonlyMap<string, readonly ConnectionSample[]>;

/** An older count says nothing about now: Prometheus, too, looks back five minutes. */
export const STALE_AFTER_MS = 5 * 60_000;

function validForMs({ validForMs: own = STALE_AFTER_MS }: ConnectionSample): number {
  return own;
}

/** A source's count for a compute at an instant. */
export interface ConnectionView {
  now: number;
  /** The highest count of the stabilisation window. */
  peak: number;
  /** False while the compute was awake for a part of the window of which nothing is known. */
  wholeWindowKnown: boolean;
  reportedMaxConnections?: number;
}

/** An idle compute has no connections, whatever was counted: that is data. Undefined where counts are missing or stale. */
export function viewConnections(
  samples: readonly ConnectionSample[] | undefined,
  compute: Compute,
  { instantMs, windowMs }: { instantMs: number; windowMs: number },
): ConnectionView | undefined {
  const known = (samples ?? []).filter(({ atMs }) => atMs <= instantMs);
  const inWindow = known.filter(({ atMs }) => atMs >= instantMs - windowMs);
  const latest = known.at(-1);
  const idle = compute.state === 'idle';
  if (!idle && (latest === undefined || instantMs - latest.atMs > validForMs(latest))) return undefined;
  const now = idle ? 0 : (latest?.connections ?? 0);
  const awakeSinceMs = Math.max(instantMs - windowMs, compute.startedAtMs ?? Number.NEGATIVE_INFINITY);
  return {
    now,
    peak: Math.max(now, ...inWindow.map(({ connections }) => connections)),
    wholeWindowKnown: idle || !hasGap(inWindow, awakeSinceMs),
    ...(!idle && latest?.maxConnections !== undefined && { reportedMaxConnections: latest.maxConnections }),
  };
}

/** True if between an instant and the last count there is a gap in which a peak may have been missed. */
function hasGap(inWindow: readonly ConnectionSample[], sinceMs: number): boolean {
  let knownUntilMs = sinceMs;
  for (const sample of inWindow) {
    if ((sample.sinceMs ?? sample.atMs) - knownUntilMs > validForMs(sample)) return true;
    knownUntilMs = Math.max(knownUntilMs, sample.atMs);
  }
  return false;
}

/** The latest count of any source, unless it is stale; a sleeping compute has no clients. */
export function connectionsAt(
  history: ConnectionHistory | undefined,
  { state }: Compute,
  instantMs: number,
): number | undefined {
  if (state === 'idle') return 0;
  const recent = [...(history?.values() ?? [])]
    .flatMap((samples) => samples.findLast(({ atMs }) => atMs <= instantMs) ?? [])
    .filter((sample) => instantMs - sample.atMs <= validForMs(sample));
  return recent.toSorted((a, b) => b.atMs - a.atMs)[0]?.connections;
}
