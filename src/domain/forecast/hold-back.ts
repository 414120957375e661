/** Forecasts in which changes come later that `disruption.at_most` holds back. Pure; instants are milliseconds since the epoch. */
import { hasSettings, type Size, sameSize } from '../compute/compute.ts';
import { isRaise } from '../plan/change.ts';
import { atMostAllowed, countsTowardsLimit } from '../plan/gates/disruption.ts';
import { compareRanks, rankOf } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { type AtMost, type PartialDisruption, resolveDisruption } from '../policy/disruption.ts';
import { ascending } from '../sorted.ts';
import type { ForecastSubject } from './alike.ts';
import { cuHoursOf, type Forecast } from './forecast.ts';
import type { Resize, Segment } from './walk.ts';

/** A change of a compute that is not made when it is wanted. */
export interface LateChange {
  policy: string;
  limit: AtMost;
  wantedAtMs: number;
  /** Undefined if something else is wanted, or the time ends, before it may be made. */
  madeAtMs: number | undefined;
}

interface RatedFleet {
  policies: CompiledPolicies;
  /** The whole fleet, each with its forecast in which every change is made at once. */
  subjects: readonly ForecastSubject[];
  /** Of the settings. */
  disruption?: PartialDisruption | undefined;
  toMs: number;
}

/** Does any policy limit the restarts within a time? */
export function limitsRestarts({ set }: CompiledPolicies, disruption?: PartialDisruption): boolean {
  return disruption?.atMost !== undefined || set.policies.some((policy) => policy.disruption?.atMost !== undefined);
}

/**
 * The same forecasts, with changes of sizes delayed as if all computes are awake: in the order of writing, for each policy no more within
 * the time of its `at_most` than a daemon makes, and none during a freeze. Changes that wait for sleep restart nobody, so they are not
 * delayed.
 */
export function holdBack<F extends Forecast>(
  forecasts: readonly F[],
  fleet: RatedFleet,
): (F & { late?: readonly LateChange[] })[] {
  const outcomes: Outcome[][] = forecasts.map(() => []);
  for (const outcome of followRate(forecasts, fleet)) outcomes[outcome.index]?.push(outcome);
  return forecasts.map((forecast, index) => {
    const late = outcomes[index]?.flatMap(lateOf(fleet)) ?? [];
    const compute = fleet.subjects[index]?.compute;
    if (late.length === 0 || !compute) return forecast;
    const made = (outcomes[index] ?? []).flatMap(({ resize: { size }, madeAtMs: atMs }) =>
      atMs === undefined ? [] : [{ atMs, size }],
    );
    const segments = resized(forecast.segments, [{ atMs: Number.NEGATIVE_INFINITY, size: compute }, ...made]);
    return { ...forecast, segments, cuHours: compute.disabled ? forecast.cuHours : cuHoursOf(segments), late };
  });
}

/** A change that is wanted, of the compute at this place. */
interface Wanted {
  index: number;
  resize: Resize;
}

interface Outcome extends Wanted {
  madeAtMs: number | undefined;
}

function lateOf({ disruption }: RatedFleet) {
  return ({ resize: { policy, atMs }, madeAtMs }: Outcome): LateChange[] => {
    const limit = policy && limitOf(policy, disruption);
    return limit && madeAtMs !== atMs ? [{ policy: policy.name, limit, wantedAtMs: atMs, madeAtMs }] : [];
  };
}

function limitOf({ disruption: own }: NonNullable<Resize['policy']>, ofSettings: PartialDisruption | undefined) {
  return resolveDisruption(own, ofSettings).atMost;
}

/** Steps through the instants at which a change is wanted, or a slot becomes free; events in this order. */
function followRate(forecasts: readonly Forecast[], fleet: RatedFleet): Outcome[] {
  const wanted = forecasts
    .flatMap(({ resizes }, index) => resizes.map((resize): Wanted => ({ index, resize })))
    .sort((a, b) => a.resize.atMs - b.resize.atMs);
  const has: Size[] = fleet.subjects.map(({ compute }) => compute);
  const waiting = new Map<number, Wanted>();
  const outcomes: Outcome[] = [];
  const rate = createRate(fleet);
  const wait = (one: Wanted) => {
    const before = waiting.get(one.index);
    if (before) outcomes.push({ ...before, madeAtMs: undefined });
    waiting.set(one.index, one);
  };
  /** The end of the freeze that forbids a change now; undefined if none does. */
  const frozenUntil = ({ index, resize: { size } }: Wanted, nowMs: number): number | undefined => {
    const span = forecasts[index]?.frozen.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs);
    return span?.allowRaise && isRaise(has[index] ?? size, size) ? undefined : span?.toMs;
  };
  const make = (one: Wanted, nowMs: number) => {
    if (frozenUntil(one, nowMs) !== undefined) return;
    if (!rate.take(one, has[one.index] ?? one.resize.size, nowMs)) return;
    waiting.delete(one.index);
    has[one.index] = one.resize.size;
    outcomes.push({ ...one, madeAtMs: nowMs });
  };
  let next = 0;
  for (let nowMs = wanted[0]?.resize.atMs ?? fleet.toMs; nowMs < fleet.toMs; ) {
    for (let one = wanted[next]; one?.resize.atMs === nowMs; one = wanted[next]) {
      wait(one);
      next += 1;
    }
    for (const one of inOrder([...waiting.values()], has)) make(one, nowMs);
    let nextMs = Math.min(wanted[next]?.resize.atMs ?? fleet.toMs, rate.nextFreeAfter(waiting.values(), nowMs));
    for (const one of waiting.values()) nextMs = Math.min(nextMs, frozenUntil(one, nowMs) ?? nextMs);
    nowMs = nextMs;
  }
  return [...outcomes, ...[...waiting.values()].map((one) => ({ ...one, madeAtMs: undefined }))];
}

function inOrder(waiting: readonly Wanted[], has: readonly Size[]): Wanted[] {
  const ranked = waiting.map((one) => {
    const { size: fields, policy } = one.resize;
    const before = has[one.index] ?? fields;
    const action = { raises: isRaise(before, fields), priority: policy?.priority ?? Number.MAX_SAFE_INTEGER, fields };
    return { one, rank: rankOf(action, { state: 'active', maxCu: before.maxCu }) };
  });
  return ranked.sort((a, b) => compareRanks(a.rank, b.rank)).map(({ one }) => one);
}

/** Of each policy, which computes it has restarted within the time of its limit, and until when they count. */
function createRate({ policies, subjects, disruption }: RatedFleet) {
  const taken = new Map<string, Map<number, number>>();
  const oldEnoughAt = new Map<string, number[]>();
  const takenBy = (name: string, nowMs: number) => {
    const places = taken.get(name) ?? new Map<number, number>();
    for (const [index, untilMs] of places) if (untilMs <= nowMs) places.delete(index);
    taken.set(name, places);
    return places;
  };
  const selectedBy = (name: string, nowMs: number) => {
    const instants = oldEnoughAt.get(name) ?? instantsOf(name);
    oldEnoughAt.set(name, instants);
    return instants.findLastIndex((ms) => ms <= nowMs) + 1;
  };
  /** From when on the policy selects each of its computes, ascending. */
  const instantsOf = (name: string): number[] => {
    const place = policies.set.policies.findIndex((policy) => policy.name === name);
    const minAgeMs = policies.set.policies[place]?.select.minAgeMs ?? 0;
    return subjects
      .filter(({ compute }) => policies.selects(place, compute, Number.POSITIVE_INFINITY))
      .map(({ compute }) => compute.createdAtMs + minAgeMs)
      .sort(ascending);
  };
  for (const [place, policy] of policies.set.policies.entries()) {
    const limit = limitOf(policy, disruption);
    if (!limit) continue;
    for (const [index, { compute, lastDisruption: last }] of subjects.entries()) {
      if (!last || !countsTowardsLimit(policies, place, { compute, last })) continue;
      takenBy(policy.name, 0).set(index, last.atMs + limit.windowMs);
    }
  }
  return {
    /** False if it must wait; else its place is taken, if it needs one. */
    take({ index, resize: { policy, size } }: Wanted, has: Size, nowMs: number): boolean {
      const limit = policy && limitOf(policy, disruption);
      if (!limit || sameSize(has, size) || subjects[index]?.compute.disabled) return true;
      const { raise, lower } = resolveDisruption(policy.disruption, disruption);
      if ((isRaise(has, size) ? raise : lower).when === 'idle') return true;
      const places = takenBy(policy.name, nowMs);
      if (!places.has(index) && places.size >= atMostAllowed(selectedBy(policy.name, nowMs), limit)) return false;
      places.set(index, nowMs + limit.windowMs);
      return true;
    },
    /** The next instant at which a waiting change may be made; infinity if none waits. */
    nextFreeAfter(waiting: Iterable<Wanted>, nowMs: number): number {
      const names = new Set([...waiting].flatMap(({ resize }) => resize.policy?.name ?? []));
      const ends = [...names].flatMap((name) => [...takenBy(name, nowMs).values()]);
      return ends.reduce((first, ms) => Math.min(first, ms), Number.POSITIVE_INFINITY);
    },
  };
}

/** The same segments with the delayed sizes; the first of these begins before them. */
function resized(segments: readonly Segment[], sizes: readonly { atMs: number; size: Size }[]): Segment[] {
  const pieces: Segment[] = [];
  let place = 0;
  for (const segment of segments) {
    for (let fromMs = segment.fromMs; fromMs < segment.toMs; fromMs = pieces.at(-1)?.toMs ?? segment.toMs) {
      while ((sizes[place + 1]?.atMs ?? Number.POSITIVE_INFINITY) <= fromMs) place += 1;
      const { minCu, maxCu } = sizes[place]?.size ?? segment;
      const toMs = Math.min(segment.toMs, sizes[place + 1]?.atMs ?? segment.toMs);
      const piece = { ...segment, minCu, maxCu, fromMs, toMs };
      const last = pieces.at(-1);
      if (last && hasSettings(last, piece)) {
        pieces[pieces.length - 1] = { ...last, toMs, policies: [...new Set([...last.policies, ...piece.policies])] };
      } else pieces.push(piece);
    }
  }
  return pieces;
}
