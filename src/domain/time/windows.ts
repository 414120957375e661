/**
 * Computes when windows are open: exactly, from one change to the next, never by stepping through time. `windows/local-time.ts` has the
 * rules for changes of the clocks: every boundary happens exactly once.
 */

import type { AbsoluteInterval, TimeSpec } from './time-spec.ts';
import { coverWholeWeek } from './windows/coverage.ts';
import { cronSwitch, cronWindow } from './windows/cron-windows.ts';
import { earliest, latest, type WindowKind } from './windows/opening.ts';
import { followStretch, type KnownSteps, mostSearches } from './windows/stretch.ts';
import { weekly } from './windows/weekly.ts';

/**
 * Windows of several zones that together leave no gap for this long count as open for ever. Three years contain every change of the clocks
 * in every combination of zones.
 */
const OPEN_FOR_EVER_MS = 3 * 366 * 86_400_000;

const forward: KnownSteps = new WeakMap();
const backward: KnownSteps = new WeakMap();

/** True if the window is open at an instant (milliseconds since the epoch). */
export function isOpenAt(spec: TimeSpec, instantMs: number): boolean {
  return kindOf(spec).isOpenAt(spec, instantMs);
}

/** True if any of the windows is open at an instant. */
export function anyOpenAt(specs: readonly TimeSpec[], instantMs: number): boolean {
  return specs.some((spec) => isOpenAt(spec, instantMs));
}

/** {@link nextChangeOfAny} of one window. */
export function nextChangeAfter(spec: TimeSpec, instantMs: number): number | undefined {
  return nextChangeOfAny([spec], instantMs);
}

/**
 * The first instant strictly after `instantMs` at which {@link anyOpenAt} changes; undefined if it never does, or not within the bounded
 * search. Where one window ends as another starts nothing changes.
 */
export function nextChangeOfAny(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  const isOpen = anyOpenAt(specs, instantMs);
  let reachedMs = mayChangeAfter(specs, instantMs);
  for (let searches = 1; reachedMs !== undefined && anyOpenAt(specs, reachedMs) === isOpen; searches += 1) {
    if (searches >= mostSearches(specs.length)) return undefined;
    reachedMs = mayChangeAfter(specs, reachedMs);
  }
  return reachedMs;
}

/**
 * As {@link nextChangeOfAny}, for repeated calls: where the bounded search finds no change, the instant that it reached, from which it is
 * to go on. Undefined if there is no change at all.
 */
export function mayChangeAfter(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  if (coverWholeWeek(specs)) return undefined;
  if (!anyOpenAt(specs, instantMs)) return firstStart(specs, instantMs);
  const lastEndMs = latest(specs, (spec) => (spec.kind === 'interval' ? spec.endMs : undefined)) ?? instantMs;
  const horizonMs = Math.max(instantMs, lastEndMs) + OPEN_FOR_EVER_MS;
  return followStretch(forward, specs, instantMs, {
    step: (ms) => latest(specs, (spec) => kindOf(spec).endTouching(spec, ms)) ?? ms,
    isBeyondHorizon: (ms) => ms > horizonMs,
    never: undefined,
    unfinished: (reachedMs) => reachedMs,
  });
}

/**
 * Since when the windows have been open without a break, at an instant: undefined if they are closed,
 * −Infinity if they have always been open, or for longer than a bounded search looks back.
 */
export function openSince(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  return followBack(specs, instantMs, () => Number.NEGATIVE_INFINITY);
}

/**
 * The latest instant at or before `instantMs` at which {@link anyOpenAt} may have changed; −Infinity if it never did. The mirror of
 * {@link mayChangeAfter}: where a bounded search finds no change, the instant that it reached.
 */
export function mayHaveChangedUntil(specs: readonly TimeSpec[], instantMs: number): number {
  const sinceMs = followBack(specs, instantMs, (reachedMs) => reachedMs);
  if (sinceMs !== undefined) return sinceMs;
  return latest(specs, (spec) => kindOf(spec).latestEndUntil(spec, instantMs)) ?? Number.NEGATIVE_INFINITY;
}

function followBack(
  specs: readonly TimeSpec[],
  instantMs: number,
  unfinished: (reachedMs: number) => number,
): number | undefined {
  if (coverWholeWeek(specs)) return Number.NEGATIVE_INFINITY;
  if (!anyOpenAt(specs, instantMs)) return undefined;
  const firstStartMs = earliest(specs, (spec) => (spec.kind === 'interval' ? spec.startMs : undefined)) ?? instantMs;
  const horizonMs = Math.min(instantMs, firstStartMs) - OPEN_FOR_EVER_MS;
  return followStretch(backward, specs, instantMs, {
    step: (ms) => earliest(specs, (spec) => kindOf(spec).startTouching(spec, ms)) ?? ms,
    isBeyondHorizon: (ms) => ms < horizonMs,
    never: Number.NEGATIVE_INFINITY,
    unfinished,
  });
}

function firstStart(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  return earliest(specs, (spec) => kindOf(spec).nextStartAfter(spec, instantMs));
}

function touches({ startMs, endMs }: AbsoluteInterval, instantMs: number): boolean {
  return startMs <= instantMs && instantMs <= endMs && startMs < endMs;
}

/** Every kind of window: a new one is one file and one line here. */
const KINDS: { [K in TimeSpec['kind']]: WindowKind<Extract<TimeSpec, { kind: K }>> } = {
  weekly,
  cron: cronWindow,
  'cron-switch': cronSwitch,
  interval: {
    isOpenAt: ({ startMs, endMs }, instantMs) => startMs <= instantMs && instantMs < endMs,
    endTouching: (spec, instantMs) => (touches(spec, instantMs) ? spec.endMs : undefined),
    startTouching: (spec, instantMs) => (touches(spec, instantMs) ? spec.startMs : undefined),
    nextStartAfter: ({ startMs, endMs }, instantMs) => (startMs > instantMs && startMs < endMs ? startMs : undefined),
    latestEndUntil: ({ startMs, endMs }, instantMs) => (endMs <= instantMs && startMs < endMs ? endMs : undefined),
  },
  always: {
    isOpenAt: () => true,
    endTouching: () => Number.POSITIVE_INFINITY,
    startTouching: () => Number.NEGATIVE_INFINITY,
    nextStartAfter: () => undefined,
    latestEndUntil: () => undefined,
  },
};

export function kindOf<Spec extends TimeSpec>(spec: Spec): WindowKind<Spec> {
  return KINDS[spec.kind] as unknown as WindowKind<Spec>;
}
