/**
 * Computes exactly when windows are open, from one change to the next, without stepping through time. windows/local-time.ts has the rules
 * for clock changes: every boundary happens exactly once.
 */

import type { AbsoluteInterval, TimeSpec } from './time-spec.ts';
import { DAY_MS } from './units.ts';
import { coverWholeWeek } from './windows/coverage.ts';
import { cronSwitch, cronWindow } from './windows/cron-windows.ts';
import { earliest, latest, type WindowKind } from './windows/opening.ts';
import { followStretch, maxSearches, type StepCache } from './windows/stretch.ts';
import { weekly } from './windows/weekly.ts';

/** Windows that together have no gap for this long count as always open. Three years contain every combination of clock changes. */
const OPEN_FOR_EVER_MS = 3 * 366 * DAY_MS;

const forwardSteps: StepCache = new WeakMap();
const backwardSteps: StepCache = new WeakMap();

/** True if the window is open at an instant (milliseconds since the epoch). */
export function isOpenAt(spec: TimeSpec, instantMs: number): boolean {
  return kindOf(spec).isOpenAt(spec, instantMs);
}

/** True if any of the windows is open at an instant. */
export function anyOpenAt(specs: readonly TimeSpec[], instantMs: number): boolean {
  return specs.some((spec) => isOpenAt(spec, instantMs));
}

/**
 * The first instant after `instantMs` at which {@link anyOpenAt} changes; undefined if it never does, or not within the bounded search.
 * If one window ends when another starts, nothing changes.
 */
export function nextChangeOfAny(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  const isOpen = anyOpenAt(specs, instantMs);
  let reachedMs = mayChangeAfter(specs, instantMs);
  for (let searches = 1; reachedMs !== undefined && anyOpenAt(specs, reachedMs) === isOpen; searches += 1) {
    if (searches >= maxSearches(specs.length)) return undefined;
    reachedMs = mayChangeAfter(specs, reachedMs);
  }
  return reachedMs;
}

/**
 * Like {@link nextChangeOfAny}, but if the bounded search finds no change, returns the instant that it reached, from which the caller can
 * continue. Undefined if there is no change at all.
 */
export function mayChangeAfter(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  if (coverWholeWeek(specs)) return undefined;
  if (!anyOpenAt(specs, instantMs)) return earliest(specs, (spec) => kindOf(spec).nextStartAfter(spec, instantMs));
  const lastEndMs = latest(specs, (spec) => (spec.kind === 'interval' ? spec.endMs : undefined)) ?? instantMs;
  const horizonMs = Math.max(instantMs, lastEndMs) + OPEN_FOR_EVER_MS;
  return followStretch(forwardSteps, specs, instantMs, {
    step: (ms) => latest(specs, (spec) => kindOf(spec).endTouching(spec, ms)) ?? ms,
    isBeyondHorizon: (ms) => ms > horizonMs,
    never: undefined,
    unfinished: (reachedMs) => reachedMs,
  });
}

/**
 * The instant since which the windows have been open without a break. Undefined if they are closed, −Infinity if they have always been
 * open, or for longer than the bounded search looks back.
 */
export function openSince(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  return followBack(specs, instantMs, () => Number.NEGATIVE_INFINITY);
}

/**
 * The latest instant up to `instantMs` at which {@link anyOpenAt} may have changed; −Infinity if it never did. If the bounded search
 * finds no change, returns the instant that it reached, like {@link mayChangeAfter}.
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
  return followStretch(backwardSteps, specs, instantMs, {
    step: (ms) => earliest(specs, (spec) => kindOf(spec).startTouching(spec, ms)) ?? ms,
    isBeyondHorizon: (ms) => ms < horizonMs,
    never: Number.NEGATIVE_INFINITY,
    unfinished,
  });
}

function touches({ startMs, endMs }: AbsoluteInterval, instantMs: number): boolean {
  return startMs <= instantMs && instantMs <= endMs && startMs < endMs;
}

/** The functions of each kind of window. To add a kind: a file in windows/ and an entry here. */
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
