/**
 * When windows are open: exactly, from one change to the next, never by stepping through time.
 * The rules for changes of the clocks are those of `windows/local-time.ts`: every boundary happens exactly once.
 */
import type { TimeSpec } from './time-spec.ts';
import { coverWholeWeek } from './windows/coverage.ts';
import { kindOf } from './windows/occurrences.ts';
import { earliest, latest } from './windows/opening.ts';
import { followStretch, type KnownStretches } from './windows/stretch.ts';

/**
 * Windows of several zones that together leave no gap for so long are taken to be open for ever. Three years see every
 * change of the clocks in every combination of zones.
 */
const OPEN_FOR_EVER_MS = 3 * 366 * 86_400_000;

const forward: KnownStretches = new WeakMap();
const backward: KnownStretches = new WeakMap();

/** True if the window is open at an instant (milliseconds since the epoch). */
export function isOpenAt(spec: TimeSpec, instantMs: number): boolean {
  return kindOf(spec).isOpenAt(spec, instantMs);
}

/** True if any of the windows is open at an instant. */
export function anyOpenAt(specs: readonly TimeSpec[], instantMs: number): boolean {
  return specs.some((spec) => isOpenAt(spec, instantMs));
}

/** The first instant strictly after `instantMs` at which the window opens or closes; undefined if it never does. */
export function nextChangeAfter(spec: TimeSpec, instantMs: number): number | undefined {
  return nextChangeOfAny([spec], instantMs);
}

/**
 * The first instant strictly after `instantMs` at which {@link anyOpenAt} changes; undefined if it never does. Where one
 * window ends and another starts nothing changes.
 */
export function nextChangeOfAny(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  if (coverWholeWeek(specs)) return undefined;
  if (!anyOpenAt(specs, instantMs)) return firstStart(specs, instantMs);
  const horizonMs = Math.max(instantMs, ...intervals(specs).map((spec) => spec.endMs)) + OPEN_FOR_EVER_MS;
  return followStretch(forward, specs, instantMs, {
    step: (ms) => latest(answers(specs, (spec) => kindOf(spec).endTouching(spec, ms))) ?? ms,
    isBeyondHorizon: (ms) => ms > horizonMs,
    never: undefined,
  });
}

/**
 * Since when the windows have been open without a break, at an instant: undefined if they are closed,
 * −Infinity if they have always been open.
 */
export function openSince(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  if (coverWholeWeek(specs)) return Number.NEGATIVE_INFINITY;
  if (!anyOpenAt(specs, instantMs)) return undefined;
  const horizonMs = Math.min(instantMs, ...intervals(specs).map((spec) => spec.startMs)) - OPEN_FOR_EVER_MS;
  return followStretch(backward, specs, instantMs, {
    step: (ms) => earliest(answers(specs, (spec) => kindOf(spec).startTouching(spec, ms))) ?? ms,
    isBeyondHorizon: (ms) => ms < horizonMs,
    never: Number.NEGATIVE_INFINITY,
  });
}

/**
 * The latest instant at or before `instantMs` at which {@link anyOpenAt} changed; −Infinity if it never did. The mirror of
 * {@link nextChangeOfAny}.
 */
export function lastChangeOfAny(specs: readonly TimeSpec[], instantMs: number): number {
  const sinceMs = openSince(specs, instantMs);
  if (sinceMs !== undefined) return sinceMs;
  return latest(answers(specs, (spec) => kindOf(spec).latestEndUntil(spec, instantMs))) ?? Number.NEGATIVE_INFINITY;
}

function firstStart(specs: readonly TimeSpec[], instantMs: number): number | undefined {
  return earliest(answers(specs, (spec) => kindOf(spec).nextStartAfter(spec, instantMs)));
}

function answers(specs: readonly TimeSpec[], ask: (spec: TimeSpec) => number | undefined): number[] {
  return specs.map(ask).filter((ms) => ms !== undefined);
}

function intervals(specs: readonly TimeSpec[]) {
  return specs.filter((spec) => spec.kind === 'interval');
}
