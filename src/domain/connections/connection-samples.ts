import type { ConnectionNeed } from '../policy/directive.ts';
import { type PartialDisruption, resolveDisruption, waitsForQuiet } from '../policy/disruption.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy, PolicySet } from '../policy/policy.ts';
import { MINUTE_MS } from '../time/units.ts';
import { type ConnectionSample, STALE_AFTER_MS, validityOf } from './connections.ts';

/** The maximum number of stored samples per compute, over all its sources. */
export const MAX_SAMPLES = 32;

/** Counts are kept at least this long. */
const MIN_WINDOW_MS = 5 * MINUTE_MS;

/** After this many intervals without a new one, a source's last count is stale. */
const STALE_INTERVALS = 2.5;

/** True if policies need counts of connections, for headroom or to wait for a quiet moment. `settings` have the rules that policies leave out. */
export function asksForConnections({ policies }: PolicySet, settings: PartialDisruption): boolean {
  return connectionNeeds(policies).length > 0 || policies.some((policy) => asksForQuiet(policy, settings));
}

/** True if a change by the policy waits until few connections are open. */
export function asksForQuiet(policy: Policy, settings: PartialDisruption): boolean {
  const { asksForConnections: asks, mayChange } = ruleOf(policy);
  return (
    asks(policy) || (mayChange(policy).length > 0 && waitsForQuiet(resolveDisruption(policy.disruption, settings)))
  );
}

export function connectionNeeds(policies: readonly Policy[]): ConnectionNeed[] {
  return policies.flatMap((policy) => ruleOf(policy).need(policy) ?? []);
}

/** The longest lookback of policies at a source's counts, in milliseconds. */
export function lookbackMs(source: string, policies: readonly Policy[]): number {
  const needs = connectionNeeds(policies).filter(({ connections }) => connections === source);
  return Math.max(MIN_WINDOW_MS, ...needs.map(({ scaleDownAfterMs }) => scaleDownAfterMs));
}

/** The validity of a count from a source that is queried at this interval, in milliseconds. */
export function validityMs(everyMs: number): number {
  return Math.max(STALE_AFTER_MS, everyMs * STALE_INTERVALS);
}

/** Adds the validity to a sample, if its source is queried less often than usual. */
export function withValidity<S extends ConnectionSample>(sample: S, everyMs: number): S {
  const validForMs = validityMs(everyMs);
  return validForMs > STALE_AFTER_MS ? { ...sample, validForMs } : sample;
}

/**
 * Reduces samples to the maximum number, oldest first. `windowMs` is the longest lookback of policies. The newest stay; older ones are
 * merged into the highest count of each stretch of time. Gaps are preserved. A sample in the window is only dropped if there are too many
 * gaps.
 */
export function compactSamples<S extends ConnectionSample>(
  samples: readonly S[],
  { nowMs, windowMs, maxSamples }: { nowMs: number; windowMs: number; maxSamples: number },
): S[] {
  const half = Math.floor(maxSamples / 2);
  const stretchMs = Math.ceil(windowMs / Math.max(1, half - 2));
  const relevant = samples.filter(({ atMs }) => atMs >= nowMs - windowMs - stretchMs);
  if (relevant.length <= maxSamples) return relevant;
  const compacted: S[] = [];
  for (const sample of relevant.slice(0, -half)) {
    const last = compacted.at(-1);
    if (last && belongTogether(last, sample, stretchMs)) compacted[compacted.length - 1] = higherOf(last, sample);
    else compacted.push(sample);
  }
  return [...compacted, ...relevant.slice(-half)].slice(-maxSamples);
}

function belongTogether(last: ConnectionSample, next: ConnectionSample, stretchMs: number): boolean {
  const hasGap = (next.sinceMs ?? next.atMs) - last.atMs > validityOf(next);
  return !hasGap && next.atMs - (last.sinceMs ?? last.atMs) <= stretchMs;
}

function higherOf<S extends ConnectionSample>(last: S, next: S): S {
  const connections = Math.max(last.connections, next.connections);
  return { ...next, connections, sinceMs: last.sinceMs ?? last.atMs };
}
