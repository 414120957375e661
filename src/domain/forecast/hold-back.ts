/** Delays forecast changes that `disruption.at_most` holds back. Instants are milliseconds since the epoch. */

import { hasSettings, isRaise, type Size, sameSize } from '../compute/compute.ts';
import { getOrAdd } from '../grouping.ts';
import { atMostAllowed, countsTowardsLimit } from '../plan/gates/disruption.ts';
import { compareRanks, rankOf } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { type AtMost, type PartialDisruption, resolveDisruption } from '../policy/disruption.ts';
import type { Policy } from '../policy/policy.ts';
import { AT_ANY_AGE } from '../policy/select.ts';
import { ascending } from '../sorted.ts';
import { spanAt } from '../time/span.ts';
import type { ForecastSubject } from './compute-groups.ts';
import { cuHoursOf, type Forecast, type Resize, type Segment } from './forecast.ts';

/** A change that is made later than wanted, or not at all. */
export interface DelayedChange {
  policy: string;
  limit: AtMost;
  wantedAtMs: number;
  /** Undefined if another change is wanted, or the forecast ends, before the change may be made. */
  madeAtMs: number | undefined;
}

interface LimitedFleet {
  policies: CompiledPolicies;
  /** The whole fleet, in the order of the forecasts. */
  subjects: readonly ForecastSubject[];
  /** The defaults from the settings. */
  disruption?: PartialDisruption | undefined;
  toMs: number;
}

/** True if the settings or a policy limit the restarts within a time window. */
export function limitsRestarts({ set }: CompiledPolicies, disruption?: PartialDisruption): boolean {
  return disruption?.atMost !== undefined || set.policies.some((policy) => policy.disruption?.atMost !== undefined);
}

/**
 * Returns the forecasts with delayed changes of sizes, assuming that all computes are awake. As in a daemon, a policy changes no more computes
 * within a window than its `at_most` allows, in write order, and none during a freeze. Changes that wait for sleep restart nothing, so they are
 * not delayed.
 */
export function holdBack<F extends Forecast>(
  forecasts: readonly F[],
  fleet: LimitedFleet,
): (F & { late?: readonly DelayedChange[] })[] {
  const outcomes: Outcome[][] = forecasts.map(() => []);
  for (const outcome of applyLimits(forecasts, fleet)) outcomes[outcome.index]?.push(outcome);
  return forecasts.map((forecast, index) => {
    const outcomesOfCompute = outcomes[index] ?? [];
    const late = outcomesOfCompute.flatMap((outcome) => delayedChange(outcome, fleet) ?? []);
    const compute = fleet.subjects[index]?.compute;
    if (late.length === 0 || !compute) return forecast;
    const made = outcomesOfCompute.flatMap(({ resize: { size }, madeAtMs: atMs }) =>
      atMs === undefined ? [] : [{ atMs, size }],
    );
    const segments = withSizes(forecast.segments, [{ atMs: Number.NEGATIVE_INFINITY, size: compute }, ...made]);
    return { ...forecast, segments, cuHours: compute.disabled ? forecast.cuHours : cuHoursOf(segments), late };
  });
}

/** A wanted change of the compute with this index. */
interface WantedResize {
  index: number;
  resize: Resize;
}

interface Outcome extends WantedResize {
  madeAtMs: number | undefined;
}

function delayedChange(
  { resize: { policy, atMs }, madeAtMs }: Outcome,
  fleet: LimitedFleet,
): DelayedChange | undefined {
  const limit = policy && limitOf(policy, fleet.disruption);
  return limit && madeAtMs !== atMs ? { policy: policy.name, limit, wantedAtMs: atMs, madeAtMs } : undefined;
}

function limitOf(policy: Pick<Policy, 'disruption'>, settings: PartialDisruption | undefined): AtMost | undefined {
  return resolveDisruption(policy.disruption, settings).atMost;
}

/** Steps through the instants at which a change is wanted or becomes possible, and returns all outcomes. */
function applyLimits(forecasts: readonly Forecast[], fleet: LimitedFleet): Outcome[] {
  const wanted = forecasts
    .flatMap(({ resizes }, index) => resizes.map((resize): WantedResize => ({ index, resize })))
    .sort((a, b) => a.resize.atMs - b.resize.atMs);
  const sizes: Size[] = fleet.subjects.map(({ compute }) => compute);
  const waiting = new Map<number, WantedResize>();
  const outcomes: Outcome[] = [];
  const limits = createRestartLimits(fleet);
  const enqueue = (change: WantedResize) => {
    const before = waiting.get(change.index);
    if (before) outcomes.push({ ...before, madeAtMs: undefined });
    waiting.set(change.index, change);
  };
  /** The end of a freeze that forbids the change now; undefined if there is none. */
  const frozenUntil = ({ index, resize: { size } }: WantedResize, nowMs: number): number | undefined => {
    const span = spanAt(forecasts[index]?.frozen ?? [], nowMs);
    return span?.allowRaise && isRaise(sizes[index] ?? size, size) ? undefined : span?.toMs;
  };
  const tryResize = (change: WantedResize, nowMs: number) => {
    if (frozenUntil(change, nowMs) !== undefined) return;
    if (!limits.tryRestart(change, sizes[change.index] ?? change.resize.size, nowMs)) return;
    waiting.delete(change.index);
    sizes[change.index] = change.resize.size;
    outcomes.push({ ...change, madeAtMs: nowMs });
  };
  let next = 0;
  for (let nowMs = wanted[0]?.resize.atMs ?? fleet.toMs; nowMs < fleet.toMs; ) {
    for (let change = wanted[next]; change?.resize.atMs === nowMs; change = wanted[next]) {
      enqueue(change);
      next += 1;
    }
    for (const change of inWriteOrder([...waiting.values()], sizes)) tryResize(change, nowMs);
    let nextMs = Math.min(wanted[next]?.resize.atMs ?? fleet.toMs, limits.nextFreeAfter(waiting.values(), nowMs));
    for (const change of waiting.values()) nextMs = Math.min(nextMs, frozenUntil(change, nowMs) ?? nextMs);
    nowMs = nextMs;
  }
  return [...outcomes, ...[...waiting.values()].map((change) => ({ ...change, madeAtMs: undefined }))];
}

function inWriteOrder(waiting: readonly WantedResize[], sizes: readonly Size[]): WantedResize[] {
  const ranked = waiting.map((change) => {
    const { size: fields, policy } = change.resize;
    const before = sizes[change.index] ?? fields;
    const action = { raises: isRaise(before, fields), priority: policy?.priority ?? Number.MAX_SAFE_INTEGER, fields };
    return { change, rank: rankOf(action, { state: 'active', maxCu: before.maxCu }) };
  });
  return ranked.sort((a, b) => compareRanks(a.rank, b.rank)).map(({ change }) => change);
}

/** Tracks by policy which computes were restarted within the window of its limit, and until when they count. */
function createRestartLimits({ policies, subjects, disruption }: LimitedFleet) {
  const restartedBy = new Map<string, Map<number, number>>();
  const selectedInstants = new Map<string, number[]>();
  const restartedNow = (name: string, nowMs: number) => {
    const restarted = getOrAdd(restartedBy, name, () => new Map<number, number>());
    for (const [index, untilMs] of restarted) if (untilMs <= nowMs) restarted.delete(index);
    return restarted;
  };
  const countSelected = (name: string, nowMs: number) =>
    getOrAdd(selectedInstants, name, () => instantsOf(name)).findLastIndex((ms) => ms <= nowMs) + 1;
  /** The instants from which the policy selects each of its computes, ascending. */
  const instantsOf = (name: string): number[] => {
    const policyIndex = policies.set.policies.findIndex((policy) => policy.name === name);
    const minAgeMs = policies.set.policies[policyIndex]?.select.minAgeMs ?? 0;
    return subjects
      .filter(({ compute }) => policies.selects(policyIndex, compute, AT_ANY_AGE))
      .map(({ compute }) => compute.createdAtMs + minAgeMs)
      .sort(ascending);
  };
  for (const [policyIndex, policy] of policies.set.policies.entries()) {
    const limit = limitOf(policy, disruption);
    if (!limit) continue;
    for (const [index, { compute, lastDisruption: last }] of subjects.entries()) {
      if (!last || !countsTowardsLimit(policies, policyIndex, { compute, last })) continue;
      restartedNow(policy.name, 0).set(index, last.atMs + limit.windowMs);
    }
  }
  return {
    /** Counts the restart towards the limit, if the change needs one; false if the change must wait. */
    tryRestart({ index, resize: { policy, size } }: WantedResize, before: Size, nowMs: number): boolean {
      const limit = policy && limitOf(policy, disruption);
      if (!limit || sameSize(before, size) || subjects[index]?.compute.disabled) return true;
      const { raise, lower } = resolveDisruption(policy.disruption, disruption);
      if ((isRaise(before, size) ? raise : lower).when === 'idle') return true;
      const restarted = restartedNow(policy.name, nowMs);
      if (!restarted.has(index) && restarted.size >= atMostAllowed(countSelected(policy.name, nowMs), limit))
        return false;
      restarted.set(index, nowMs + limit.windowMs);
      return true;
    },
    /** The next instant at which a waiting change may become possible; infinity if none waits. */
    nextFreeAfter(waiting: Iterable<WantedResize>, nowMs: number): number {
      const names = new Set([...waiting].flatMap(({ resize }) => resize.policy?.name ?? []));
      const ends = [...names].flatMap((name) => [...restartedNow(name, nowMs).values()]);
      return ends.reduce((first, ms) => Math.min(first, ms), Number.POSITIVE_INFINITY);
    },
  };
}

/** The segments with these sizes instead of their own; the first size begins before the first segment. */
function withSizes(segments: readonly Segment[], sizes: readonly { atMs: number; size: Size }[]): Segment[] {
  const pieces: Segment[] = [];
  let sizeIndex = 0;
  for (const segment of segments) {
    for (let fromMs = segment.fromMs; fromMs < segment.toMs; fromMs = pieces.at(-1)?.toMs ?? segment.toMs) {
      while ((sizes[sizeIndex + 1]?.atMs ?? Number.POSITIVE_INFINITY) <= fromMs) sizeIndex += 1;
      const { minCu, maxCu } = sizes[sizeIndex]?.size ?? segment;
      const toMs = Math.min(segment.toMs, sizes[sizeIndex + 1]?.atMs ?? segment.toMs);
      const piece = { ...segment, minCu, maxCu, fromMs, toMs };
      const last = pieces.at(-1);
      if (last && hasSettings(last, piece)) {
        pieces[pieces.length - 1] = { ...last, toMs, policies: [...new Set([...last.policies, ...piece.policies])] };
      } else pieces.push(piece);
    }
  }
  return pieces;
}
