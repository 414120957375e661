import type { TimeSpec } from '../time-spec.ts';

/**
 * Windows that meet so often in a row without a gap are taken to go on for ever: two crons that take turns every minute would
 * otherwise be followed minute by minute.
 */
const MOST_MEETINGS = 3_000;

/** A stretch of time without a break, as far as it was followed, and what was found at its end. */
interface Stretch {
  fromMs: number;
  toMs: number;
  end: number | undefined;
}

/** Stretches that were followed already, in one direction: who asks minute by minute must not follow them each time. */
export type KnownStretches = WeakMap<readonly TimeSpec[], Stretch>;

export interface Direction {
  /** Where the openings that touch an instant end in this direction; the instant itself if none goes on. */
  step(ms: number): number;
  isBeyondHorizon(ms: number): boolean;
  /** The answer where no end is in sight. */
  never: number | undefined;
}

/** Follows openings that touch each other, from an instant at which one is open, to the end of the last. */
export function followStretch(
  stretches: KnownStretches,
  specs: readonly TimeSpec[],
  instantMs: number,
  { step, isBeyondHorizon, never }: Direction,
): number | undefined {
  const known = stretches.get(specs);
  let reachedMs = instantMs;
  for (let meetings = 0; meetings < MOST_MEETINGS && !isBeyondHorizon(reachedMs); meetings += 1) {
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
