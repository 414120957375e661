import type { ConnectionNeed } from '../policy/directive.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy, PolicySet } from '../policy/policy.ts';
import { type ConnectionSample, STALE_AFTER_MS } from './connections.ts';

/** Samples kept of a compute, over all its sources. */
export const MOST_SAMPLES = 32;

/** Counts are kept for at least this long, in milliseconds, whatever the policies' lookback. */
const LEAST_WINDOW_MS = 5 * 60_000;

/** After this many missed intervals a source's last count is stale. */
const MISSED = 2.5;

/** True if any policy uses connections: then they are counted and read. */
export function asksForConnections({ policies }: PolicySet): boolean {
  return needsOf(policies).length > 0;
}

/** The facts about connections that policies need. */
export function needsOf(policies: readonly Policy[]): ConnectionNeed[] {
  return policies.flatMap((policy) => ruleOf(policy).need(policy) ?? []);
}

/** The longest lookback of policies at the counts of a source, in milliseconds. */
export function windowOf(source: string, policies: readonly Policy[]): number {
  const needs = needsOf(policies).filter(({ connections }) => connections === source);
  return Math.max(LEAST_WINDOW_MS, ...needs.map(({ scaleDownAfterMs }) => scaleDownAfterMs));
}

/** The validity of a count, in milliseconds, from a source that is asked at this interval. */
export function validityMs(everyMs: number): number {
  return Math.max(STALE_AFTER_MS, everyMs * MISSED);
}

/** A sample with the validity of a source that is asked only at this interval. */
export function withValidity<S extends ConnectionSample>(sample: S, everyMs: number): S {
  const validForMs = validityMs(everyMs);
  return validForMs > STALE_AFTER_MS ? { ...sample, validForMs } : sample;
}

interface CompactOptions {
  nowMs: number;
  /** The longest lookback of policies, in milliseconds. */
  windowMs: number;
  /** The most samples kept. */
  most: number;
}

/**
 * Reduces samples to the number that is kept, oldest first: the newest stay, older ones become the highest count of each stretch of time.
 * A gap stays a gap, and a sample in the window is only dropped where there are more gaps than room.
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
