import { type Size, sameSize } from '../../compute/compute.ts';
import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../compute/compute-units.ts';
import { type ConnectionProfile, usefulMaximum } from '../../connections/connection-profile.ts';
import { type ConnectionView, viewConnections } from '../../connections/connections.ts';
import type { ConnectionNeed, Need } from '../../policy/directive.ts';
import type { TraceStep } from '../trace.ts';
import { type Draft, note, type StageInput, stage } from './draft.ts';

/** Shares are written in percent; without this 70 of 100 connections at 70 % would need 101. */
const ROUNDING = 1e-9;

/** The connections of the compute, for each policy that needs to know them; none where they are not evaluated. */
export function viewsOf({ effective, connections, compute, instantMs }: StageInput<'need'>) {
  if (!connections) return [];
  return effective.need.map((directive) => {
    const options = { instantMs, windowMs: directive.need.scaleDownAfterMs };
    return { directive, view: viewConnections(connections.get(directive.need.connections), compute, options) };
  });
}

/**
 * Third stage: max_connections of the result must cover the need, ceil(peak / target), with the smallest size that does.
 * Source: docs/policies.md, "Connections".
 */
export const ensureHeadroom = stage(['need', 'bounds'], (draft, input) => {
  const views = viewsOf(input);
  for (const { directive, view } of views) if (view) coverNeed(draft, input, directive, view);
  for (const { directive, view } of views) {
    if (directive.need.act === 'advise') continue;
    if (!view?.wholeWindowKnown) keepConnections(draft, input, directive, view !== undefined);
    if (view && isCritical(input, directive.need, view)) draft.urgent = true;
  }
});

/** After every other stage: reports a need that is not covered in the end, whatever the obstacle. */
export const reportUnmet = stage(['need'], (draft, input) => {
  const { compute, baseline, profile } = input;
  const size = draft.size ?? baseline ?? compute;
  // A size that accepts no more connections is no reason to disconnect clients in a hurry.
  draft.urgent &&= profile.maxConnections(size) > profile.maxConnections(compute);
  for (const { directive, view } of viewsOf(input)) {
    const { policy, need } = directive;
    if (!view || need.act === 'advise') continue;
    const counted = { peak: view.peak, need: needOf(need, view), usable: usableAt(profile, size) };
    if (counted.usable >= counted.need) continue;
    const isOverruled = draft.deciders.size?.hold !== undefined || draft.deciders.size?.code === 'hard_limit';
    const minimum = isOverruled ? undefined : tooLowMinimum(size, counted.need, need, profile);
    note(draft, { group: 'size', code: 'headroom_unmet', policy, connections: counted, ...(minimum && { minimum }) });
  }
});

/** True if so many connections are in use now that a raise does not wait. */
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
  const from = { minCu: before.minCu, maxCu: before.maxCu };
  const isMet = usableAt(profile, from) >= need;
  const after = smallestCovering(from, need, reachOf(directive.need, from, input.compute), profile);
  const step = {
    group: 'size' as const,
    policy,
    connections: { peak: view.peak, need, usable: usableAt(profile, after) },
  };
  if (directive.need.act === 'advise') {
    const advised = { ...step, code: 'headroom_advised' as const, before: from };
    note(draft, isMet ? { ...step, code: 'headroom_met' } : advised);
  } else if (!sameSize(after, from)) {
    note(draft, { ...step, code: 'headroom', before: from, after });
    reportOverLimits(draft, input, after, directive);
  } else if (isMet || draft.size === null) {
    // If no schedule sets a value the baseline is where a raise goes back to.
    note(draft, { ...step, code: isMet ? 'headroom_met' : 'baseline', ...(draft.size === null && { after }) });
  }
}

function reportOverLimits(draft: Draft, { effective }: StageInput<'bounds'>, size: Size, { policy }: Need): void {
  const exceeded = effective.bounds.some(({ ranges }) => size.maxCu > (ranges.size?.high ?? size.maxCu));
  if (exceeded) note(draft, { group: 'size', code: 'headroom_over_limit', policy });
}

/**
 * While the connections are unknown, or not known for the whole window, neither a schedule nor a limit lowers max_connections of an awake
 * compute.
 */
function keepConnections(draft: Draft, { compute, profile }: StageInput, { policy }: Need, fresh: boolean): void {
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

function needOf({ targetShare }: ConnectionNeed, { peak }: ConnectionView): number {
  return Math.ceil(peak / targetShare - ROUNDING);
}

function usableAt(profile: ConnectionProfile, size: Size): number {
  return profile.maxConnections(size) - profile.reserved;
}

/** The size that the minimum allows, where the policy may not raise it and a higher one would give more connections. */
function tooLowMinimum(
  size: Size,
  need: number,
  { maxCu, mayRaiseMin }: ConnectionNeed,
  profile: ConnectionProfile,
): TraceStep['minimum'] {
  const reach = { minCu: maxCu, maxCu: Math.max(maxCu, size.maxCu) };
  const better = smallestCovering(size, need, reach, profile);
  if (mayRaiseMin || usableAt(profile, better) <= usableAt(profile, size)) return undefined;
  return { minCu: size.minCu, allowsCu: usefulMaximum(size.minCu, size.maxCu, profile) };
}

/** The limits of a raise. */
interface Reach {
  minCu: number;
  maxCu: number;
}

/** The largest size that a policy may raise to. A larger present size is kept while it is needed, but not raised. */
function reachOf({ maxCu, mayRaiseMin }: ConnectionNeed, from: Size, compute: Size): Reach {
  const reachCu = Math.max(maxCu, compute.maxCu);
  return { minCu: mayRaiseMin ? reachCu : Math.max(from.minCu, compute.minCu), maxCu: reachCu };
}

/** The smallest size from `from` upwards that covers the need; if none does, the smallest of the closest ones. */
function smallestCovering(from: Size, need: number, reach: Reach, profile: ConnectionProfile): Size {
  let best = from;
  for (const size of [from, ...sizesAbove(from, reach)]) {
    const usable = usableAt(profile, size);
    if (usable > usableAt(profile, best)) best = size;
    if (usable >= need) return size;
  }
  return best;
}

/** Every size within reach, by maximum and then by minimum, as the platform allows them. */
function* sizesAbove(from: Size, reach: Reach): Generator<Size> {
  for (const maxCu of COMPUTE_SIZES_CU) {
    if (maxCu < from.maxCu || maxCu > reach.maxCu) continue;
    const lowest = Math.max(from.minCu, maxCu > MAX_AUTOSCALING_CU ? maxCu : maxCu - MAX_AUTOSCALING_SPAN_CU);
    for (const minCu of COMPUTE_SIZES_CU) {
      if (minCu >= lowest && minCu <= Math.min(maxCu, reach.minCu)) yield { minCu, maxCu };
    }
  }
}
