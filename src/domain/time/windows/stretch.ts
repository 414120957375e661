import type { TimeSpec } from '../time-spec.ts';

/**
 * The most times that windows are asked for the end of their openings, before the search reports how far it came: two crons that take
 * turns every minute, or a switch whose every end is undone by a start, would otherwise be followed for years.
 */
const MOST_ASKED = 60;
/** Of very many windows each is still asked so often. */
const LEAST_MEETINGS = 4;
/** The most searches of a few windows that continue each other, where only a change is an answer. */
const MOST_SEARCHES = 8;

/** Remembered steps of a list of windows, more than one search takes. */
const MOST_REMEMBERED = 4 * MOST_ASKED;

/** The most times that each of these windows is asked before the search reports how far it came. */
export function mostMeetings(windows: number): number {
  return Math.max(LEAST_MEETINGS, Math.floor(MOST_ASKED / windows));
}

/** The most searches of these windows that continue each other, where only a change is an answer. */
export function mostSearches(windows: number): number {
  return Math.max(1, Math.floor((MOST_SEARCHES * MOST_ASKED) / (mostMeetings(windows) * windows)));
}

/**
 * The steps made in one direction: a caller that asks minute by minute must not ask every window each time. Only steps are remembered, not
 * where a search ended, so an answer never depends on earlier questions.
 */
export type KnownSteps = WeakMap<readonly TimeSpec[], Map<number, number>>;

export interface Direction {
  /** The end, in this direction, of the openings that touch an instant; the instant itself if none goes on. */
  step(ms: number): number;
  isBeyondHorizon(ms: number): boolean;
  /** The answer where no end is in sight. */
  never: number | undefined;
  /** The answer where the search came so far, and no further. */
  unfinished(reachedMs: number): number | undefined;
}

/** Follows openings that touch each other, from an instant at which one is open, to the end of the last. */
export function followStretch(
  known: KnownSteps,
  specs: readonly TimeSpec[],
  instantMs: number,
  { step, isBeyondHorizon, never, unfinished }: Direction,
): number | undefined {
  const before = known.get(specs);
  let steps = before && before.size < MOST_REMEMBERED ? before : undefined;
  let reachedMs = instantMs;
  const most = mostMeetings(specs.length);
  for (let meetings = 0; !isBeyondHorizon(reachedMs); meetings += 1) {
    if (meetings >= most) return unfinished(reachedMs);
    const knownMs = steps?.get(reachedMs);
    const furtherMs = knownMs ?? step(reachedMs);
    // One opening that touches no other is as quickly asked about as remembered.
    if (meetings > 0 && furtherMs !== reachedMs) steps ??= remember(known, specs);
    if (knownMs === undefined) steps?.set(reachedMs, furtherMs);
    if (furtherMs === reachedMs) return reachedMs;
    reachedMs = furtherMs;
  }
  return never;
}

function remember(known: KnownSteps, specs: readonly TimeSpec[]): Map<number, number> {
  const steps = new Map<number, number>();
  known.set(specs, steps);
  return steps;
}
