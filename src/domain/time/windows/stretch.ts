import type { TimeSpec } from '../time-spec.ts';

/**
 * So often windows are asked where their openings end, before the search says how far it came: two crons that take turns every
 * minute, or a switch of which every end is undone by a start, would otherwise be followed for years.
 */
const MOST_ASKED = 60;
/** Of very many windows each is still asked so often. */
const LEAST_MEETINGS = 4;
/** Where only a change is an answer, so many searches of a few windows go on from each other. */
const MOST_SEARCHES = 8;

/** A stretch of time without a break, as far as it was followed, and what was found at its end. */
interface Stretch {
  fromMs: number;
  toMs: number;
  end: number | undefined;
}

/** How often each of so many windows is asked, at most, before the search says how far it came. */
export function mostMeetings(windows: number): number {
  return Math.max(LEAST_MEETINGS, Math.floor(MOST_ASKED / windows));
}

/** How many searches of so many windows go on from each other, where only a change is an answer. */
export function mostSearches(windows: number): number {
  return Math.max(1, Math.floor((MOST_SEARCHES * MOST_ASKED) / (mostMeetings(windows) * windows)));
}

/** Stretches that were followed already, in one direction: who asks minute by minute must not follow them each time. */
export type KnownStretches = WeakMap<readonly TimeSpec[], Stretch>;

export interface Direction {
  /** Where the openings that touch an instant end in this direction; the instant itself if none goes on. */
  step(ms: number): number;
  isBeyondHorizon(ms: number): boolean;
  /** The answer where no end is in sight. */
  never: number | undefined;
  /** The answer where the search came so far, and no further. */
  unfinished(reachedMs: number): number | undefined;
}

/** Follows openings that touch each other, from an instant at which one is open, to the end of the last. */
export function followStretch(
  stretches: KnownStretches,
  specs: readonly TimeSpec[],
  instantMs: number,
  { step, isBeyondHorizon, never, unfinished }: Direction,
): number | undefined {
  const known = stretches.get(specs);
  let reachedMs = instantMs;
  const most = mostMeetings(specs.length);
  for (let meetings = 0; !isBeyondHorizon(reachedMs); meetings += 1) {
    if (meetings >= most) return unfinished(reachedMs);
    if (known && known.fromMs <= reachedMs && reachedMs <= known.toMs) return remember(known.end, known);
    const furtherMs = step(reachedMs);
    if (furtherMs === reachedMs) return remember(reachedMs);
    reachedMs = furtherMs;
  }
  return remember(never);

  function remember(end: number | undefined, joined?: Stretch): number | undefined {
    const fromMs = Math.min(instantMs, reachedMs, joined?.fromMs ?? instantMs);
    const toMs = Math.max(instantMs, reachedMs, joined?.toMs ?? instantMs);
    stretches.set(specs, { fromMs, toMs, end });
    return end;
  }
}
