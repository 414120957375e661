import { type Size, sameSize, sizeOf } from '../../compute/compute.ts';
import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../compute/compute-units.ts';
import { type ConnectionProfile, usefulMaximum } from '../../connections/connection-profile.ts';
import { type ConnectionView, viewConnections } from '../../connections/connections.ts';
import type { ConnectionNeed, Need } from '../../policy/directive.ts';
import type { TraceStep } from '../trace.ts';
import { type Draft, note, type StageInput, stage } from './draft.ts';

/** Absorbs floating-point error: without it, 70 connections at a target of 70 % would need 101. */
const ROUNDING = 1e-9;

/** The counted connections of the compute for each policy that needs them; empty where headroom is not evaluated. */
export function connectionViews({ effective, connections, compute, instantMs }: StageInput<'need'>) {
  if (!connections) return [];
  return effective.need.map((directive) => {
    const options = { instantMs, windowMs: directive.need.scaleDownAfterMs };
    return { directive, view: viewConnections(connections.get(directive.need.connections), compute, options) };
  });
}

/**
 * Raises the size to the smallest one whose `max_connections` covers the need, ceil(peak / target).
 * Source: docs/policies.md, "Connections".
 */
export const ensureHeadroom = stage(['need', 'bounds'], (draft, input) => {
  const views = connectionViews(input);
  for (const { directive, view } of views) if (view) coverNeed(draft, input, directive, view);
  for (const { directive, view } of views) {
    if (directive.need.act === 'advise') continue;
    if (!view?.isWholeWindowKnown) keepConnections(draft, input, directive, view !== undefined);
    if (view && isCritical(input, directive.need, view)) draft.urgent = true;
  }
});

/** Runs after all stages that set a size. Reports a need that the final size does not cover. */
export const reportUnmet = stage(['need'], (draft, input) => {
  const { compute, baseline, profile } = input;
  const size = draft.size ?? baseline ?? compute;
  // A size that accepts no more connections than the present one is not urgent.
  draft.urgent &&= profile.maxConnections(size) > profile.maxConnections(compute);
  for (const { directive, view } of connectionViews(input)) {
    const { policy, need } = directive;
    if (!view || need.act === 'advise') continue;
    const connections = { peak: view.peak, need: needOf(need, view), usable: usableAt(profile, size) };
    if (connections.usable >= connections.need) continue;
    const isOverruled = draft.deciders.size?.hold !== undefined || draft.deciders.size?.code === 'hard_limit';
    const minimum = isOverruled ? undefined : limitingMinimum(size, connections.need, need, profile);
    note(draft, { group: 'size', code: 'headroom_unmet', policy, connections, ...(minimum && { minimum }) });
  }
});

/** True if the share of used connections has reached the critical share. */
function isCritical(
  { profile, compute }: StageInput,
  { criticalShare }: ConnectionNeed,
  view: ConnectionView,
): boolean {
  const usable = (view.reportedMaxConnections ?? profile.maxConnections(compute)) - profile.reserved;
  return criticalShare !== undefined && view.now >= criticalShare * usable - ROUNDING;
}

function coverNeed(draft: Draft, input: StageInput<'bounds'>, directive: Need, view: ConnectionView): void {
  const { policy } = directive;
  const { profile } = input;
  const before = draft.size ?? input.baseline;
  if (!before) {
    note(draft, { group: 'size', code: 'baseline_unknown', policy });
    return;
  }
  const need = needOf(directive.need, view);
  const from = sizeOf(before);
  const isMet = usableAt(profile, from) >= need;
  const after = smallestCovering(from, need, largestAllowed(directive.need, from, input.compute), profile);
  const connections = { peak: view.peak, need, usable: usableAt(profile, after) };
  const step = { group: 'size', policy, connections } as const;
  if (directive.need.act === 'advise') {
    note(draft, isMet ? { ...step, code: 'headroom_met' } : { ...step, code: 'headroom_advised', before: from });
  } else if (!sameSize(after, from)) {
    note(draft, { ...step, code: 'headroom', before: from, after });
    const isOverLimit = input.effective.bounds.some(({ ranges }) => after.maxCu > (ranges.size?.high ?? after.maxCu));
    if (isOverLimit) note(draft, { group: 'size', code: 'headroom_over_limit', policy });
  } else if (isMet || draft.size === null) {
    // Without a value from a schedule the size returns to the baseline.
    note(draft, { ...step, code: isMet ? 'headroom_met' : 'baseline', ...(draft.size === null && { after }) });
  }
}

/** Keeps the present size if a smaller one would lower `max_connections` while connections are unknown in part of the window. */
function keepConnections(draft: Draft, { compute, profile }: StageInput, { policy }: Need, isKnownNow: boolean): void {
  const { size } = draft;
  const code = isKnownNow ? 'stabilising' : 'connections_unknown';
  const isLowered = size !== null && profile.maxConnections(size) < profile.maxConnections(compute);
  if (isLowered) note(draft, { group: 'size', policy, code, before: size, after: sizeOf(compute) });
  else if (!isKnownNow) note(draft, { group: 'size', policy, code });
}

function needOf({ targetShare }: ConnectionNeed, { peak }: ConnectionView): number {
  return Math.ceil(peak / targetShare - ROUNDING);
}

function usableAt(profile: ConnectionProfile, size: Size): number {
  return profile.maxConnections(size) - profile.reserved;
}

/** The minimum, if it limits the connections: a higher minimum would provide more of them, but the policy may not raise it. */
function limitingMinimum(
  size: Size,
  need: number,
  { maxCu, mayRaiseMin }: ConnectionNeed,
  profile: ConnectionProfile,
): TraceStep['minimum'] {
  const largest = { minCu: maxCu, maxCu: Math.max(maxCu, size.maxCu) };
  const better = smallestCovering(size, need, largest, profile);
  if (mayRaiseMin || usableAt(profile, better) <= usableAt(profile, size)) return undefined;
  return { minCu: size.minCu, allowsCu: usefulMaximum(size.minCu, size.maxCu, profile) };
}

/** The largest size that a policy may raise to. A larger wanted maximum, or a larger present size, may be kept, but is not raised. */
function largestAllowed({ maxCu, mayRaiseMin }: ConnectionNeed, from: Size, compute: Size): Size {
  const largestCu = Math.max(maxCu, compute.maxCu);
  return {
    minCu: mayRaiseMin ? largestCu : Math.max(from.minCu, compute.minCu),
    maxCu: Math.max(largestCu, from.maxCu),
  };
}

/** The smallest size between `from` and `largest` that covers the need; if none does, the smallest with the most connections. */
function smallestCovering(from: Size, need: number, largest: Size, profile: ConnectionProfile): Size {
  let best = from;
  for (const size of [from, ...sizesBetween(from, largest)]) {
    const usable = usableAt(profile, size);
    if (usable > usableAt(profile, best)) best = size;
    if (usable >= need) return size;
  }
  return best;
}

/** All allowed sizes from `from` up to `largest`, by maximum and then by minimum. */
function* sizesBetween(from: Size, largest: Size): Generator<Size> {
  for (const maxCu of COMPUTE_SIZES_CU) {
    if (maxCu < from.maxCu || maxCu > largest.maxCu) continue;
    const lowest = Math.max(from.minCu, maxCu > MAX_AUTOSCALING_CU ? maxCu : maxCu - MAX_AUTOSCALING_SPAN_CU);
    for (const minCu of COMPUTE_SIZES_CU) {
      if (minCu >= lowest && minCu <= Math.min(maxCu, largest.minCu)) yield { minCu, maxCu };
    }
  }
}
