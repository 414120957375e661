import { type Size, sameSize } from '../compute.ts';
import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../compute-units.ts';
import type { ConnectionProfile } from '../connection-profile.ts';
import { type ConnectionView, viewConnections } from '../connections.ts';
import type { HeadroomPolicy } from '../policy.ts';
import { type Draft, note, type Stage, type StageInput } from './draft.ts';
import { rangeOf } from './limits.ts';

/** Shares are written in percent; without this 70 of 100 connections at 70 % would need 101. */
const ROUNDING = 1e-9;

/**
 * Third stage: max_connections of the result must cover the need, ceil(peak / target), with the smallest size that does.
 * Source: docs/policies.md, "Connections".
 */
export const ensureHeadroom: Stage = (draft, input) => {
  const { heard, connections, compute, instantMs } = input;
  if (!connections) return;
  const views = heard.needs.map(({ policy }) => {
    const options = { instantMs, windowMs: policy.scaleDownAfterMs };
    return { policy, view: viewConnections(connections.get(policy.connections), compute, options) };
  });
  for (const { policy, view } of views) if (view) coverNeed(draft, input, policy, view);
  for (const { policy, view } of views) {
    if (policy.act === 'advise') continue;
    if (!view?.wholeWindowKnown) keepConnections(draft, input, policy, view !== undefined);
    if (view && isCritical(input, policy, view)) draft.urgent = true;
  }
};

/** After every other stage: what is not covered in the end is said, whatever was in the way. */
export const reportUnmet: Stage = (draft, { heard, connections, compute, instantMs, baseline, profile }) => {
  const size = draft.size ?? baseline ?? compute;
  // Nobody is disconnected in a hurry for a size that accepts no more connections.
  draft.urgent &&= profile.maxConnections(size) > profile.maxConnections(compute);
  if (!connections) return;
  for (const { policy } of heard.needs) {
    const windowMs = policy.scaleDownAfterMs;
    const view = viewConnections(connections.get(policy.connections), compute, { instantMs, windowMs });
    if (!view || policy.act === 'advise') continue;
    const counted = { peak: view.peak, need: needOf(policy, view), usable: usableAt(profile, size) };
    if (counted.usable < counted.need) {
      note(draft, { group: 'size', code: 'headroom_unmet', policy, connections: counted });
    }
  }
};

/** True if so many connections are in use now that a raise does not wait. */
function isCritical(
  { profile, compute }: StageInput,
  { criticalShare }: HeadroomPolicy,
  view: ConnectionView,
): boolean {
  const usable = (view.reportedMaxConnections ?? profile.maxConnections(compute)) - profile.reserved;
  return criticalShare !== undefined && view.now >= criticalShare * usable - ROUNDING;
}

function coverNeed(draft: Draft, input: StageInput, policy: HeadroomPolicy, view: ConnectionView): void {
  const { profile } = input;
  const before = draft.size ?? input.baseline;
  if (!before) {
    note(draft, { group: 'size', code: 'baseline_unknown', policy });
    return;
  }
  const need = needOf(policy, view);
  const from = { minCu: before.minCu, maxCu: before.maxCu };
  const isMet = usableAt(profile, from) >= need;
  const after = smallestCovering(from, need, policy, profile);
  const step = {
    group: 'size' as const,
    policy,
    connections: { peak: view.peak, need, usable: usableAt(profile, after) },
  };
  if (policy.act === 'advise') {
    const advised = { ...step, code: 'headroom_advised' as const, before: from };
    note(draft, isMet ? { ...step, code: 'headroom_met' } : advised);
  } else if (!sameSize(after, from)) {
    note(draft, { ...step, code: 'headroom', before: from, after });
    reportOverLimits(draft, input, after, policy);
  } else if (isMet || draft.size === null) {
    // Without an opinion of a schedule the baseline is where a raise goes back to.
    note(draft, { ...step, code: isMet ? 'headroom_met' : 'baseline', ...(draft.size === null && { after }) });
  }
}

function reportOverLimits(draft: Draft, { heard }: StageInput, size: Size, policy: HeadroomPolicy): void {
  const exceeded = heard.bounds.some((bounds) => size.maxCu > (rangeOf('size', bounds.policy)?.high ?? size.maxCu));
  if (exceeded) note(draft, { group: 'size', code: 'headroom_over_limit', policy });
}

/**
 * Where nothing is known of the connections, or not of the whole window, nothing lowers max_connections of a compute that
 * is awake: neither a schedule nor a limit.
 */
function keepConnections(draft: Draft, { compute, profile }: StageInput, policy: HeadroomPolicy, fresh: boolean): void {
  const { size } = draft;
  const step = {
    group: 'size' as const,
    policy,
    code: fresh ? ('stabilising' as const) : ('connections_unknown' as const),
  };
  const isLowered = size !== null && profile.maxConnections(size) < profile.maxConnections(compute);
  if (isLowered) note(draft, { ...step, before: size, after: { minCu: compute.minCu, maxCu: compute.maxCu } });
  else if (!fresh) note(draft, step);
}

function needOf({ targetShare }: HeadroomPolicy, { peak }: ConnectionView): number {
  return Math.ceil(peak / targetShare - ROUNDING);
}

function usableAt(profile: ConnectionProfile, size: Size): number {
  return profile.maxConnections(size) - profile.reserved;
}

/** The smallest size from `from` upwards that covers the need; if none does, the smallest of those that come nearest. */
function smallestCovering(from: Size, need: number, policy: HeadroomPolicy, profile: ConnectionProfile): Size {
  let best = from;
  for (const size of [from, ...sizesAbove(from, policy)]) {
    const usable = usableAt(profile, size);
    if (usable > usableAt(profile, best)) best = size;
    if (usable >= need) return size;
  }
  return best;
}

/** Every size that a policy may raise to, by maximum and then by minimum, as the platform allows them. */
function* sizesAbove(from: Size, { maxCu: ceiling, mayRaiseMin }: HeadroomPolicy): Generator<Size> {
  for (const maxCu of COMPUTE_SIZES_CU) {
    if (maxCu < from.maxCu || maxCu > ceiling) continue;
    const lowest = Math.max(from.minCu, maxCu > MAX_AUTOSCALING_CU ? maxCu : maxCu - MAX_AUTOSCALING_SPAN_CU);
    const mins = mayRaiseMin ? COMPUTE_SIZES_CU : [from.minCu];
    for (const minCu of mins) if (minCu >= lowest && minCu <= maxCu) yield { minCu, maxCu };
  }
}
