import { type ConnectionSample, STALE_AFTER_MS } from './connections.ts';

interface CompactOptions {
  nowMs: number;
  /** What policies look back, in milliseconds. */
  windowMs: number;
  /** How many samples may be left. */
  most: number;
}

/**
 * As many samples as may be kept, oldest first: the newest as they are, of the older ones the highest count of each stretch of time. A
 * gap stays a gap, and what lies in the window is never forgotten for want of room but where there are more gaps than room.
 */
export function compactSamples<S extends ConnectionSample>(samples: readonly S[], options: CompactOptions): S[] {
  const { nowMs, windowMs, most } = options;
  const half = Math.floor(most / 2);
  const stretchMs = Math.ceil(windowMs / Math.max(1, half - 2));
  const relevant = samples.filter(({ atMs }) => atMs >= nowMs - windowMs - stretchMs);
  if (relevant.length <= most) return relevant;
  const kept: S[] = [];
  for (const sample of relevant.slice(0, -half)) {
    const last = kept.at(-1);
    if (last && belongTogether(last, sample, stretchMs)) kept[kept.length - 1] = higherOf(last, sample);
    else kept.push(sample);
  }
  return [...kept, ...relevant.slice(-half)].slice(-most);
}

function belongTogether(last: ConnectionSample, next: ConnectionSample, stretchMs: number): boolean {
  const hasGap = (next.sinceMs ?? next.atMs) - last.atMs > (next.validForMs ?? STALE_AFTER_MS);
  return !hasGap && next.atMs - (last.sinceMs ?? last.atMs) <= stretchMs;
}

function higherOf<S extends ConnectionSample>(last: S, next: S): S {
  return {
    ...next,
    connections: Math.max(last.connections, next.connections),
    sinceMs: last.sinceMs ?? last.atMs,
  };
}
