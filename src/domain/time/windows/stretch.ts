import type { TimeSpec } from '../time-spec.ts';

/**
 * The maximum number of evaluations of windows in one search, which then returns how far it got. Without a maximum, a search would follow two
 * crons that alternate every minute, or a switch whose ends are all undone by starts, for years.
 */
const MAX_EVALUATIONS = 60;
/** The minimum number of steps of a search, however many windows there are. */
const MIN_STEPS_PER_WINDOW = 4;
/** The maximum number of consecutive searches for a change of few windows; many windows get fewer, see {@link maxSearches}. */
const MAX_SEARCHES = 8;

/** The maximum number of cached steps of a list of windows; more than one search takes. */
const MAX_CACHED_STEPS = 4 * MAX_EVALUATIONS;

/** The maximum number of steps of one search; each step evaluates all windows. */
export function maxSteps(windows: number): number {
  return Math.max(MIN_STEPS_PER_WINDOW, Math.floor(MAX_EVALUATIONS / windows));
}

/** The maximum number of consecutive searches of these windows to find a change. */
export function maxSearches(windows: number): number {
  return Math.max(1, Math.floor((MAX_SEARCHES * MAX_EVALUATIONS) / (maxSteps(windows) * windows)));
}

/**
 * Cached steps in one direction, for callers that search from many nearby instants. Only steps are cached, not where searches ended, so
 * that results never depend on earlier searches.
 */
export type StepCache = WeakMap<readonly TimeSpec[], Map<number, number>>;

interface Direction {
  /** The end, in this direction, of the openings that touch an instant; the instant itself if none reaches further. */
  step(ms: number): number;
  isBeyondHorizon(ms: number): boolean;
  /** The result if there is no end before the horizon. */
  never: number | undefined;
  /** The result if the search stopped at this instant. */
  unfinished(reachedMs: number): number | undefined;
}

/** Follows touching openings from an instant at which one is open to the end of the last. */
export function followStretch(
  cache: StepCache,
  specs: readonly TimeSpec[],
  instantMs: number,
  { step, isBeyondHorizon, never, unfinished }: Direction,
): number | undefined {
  const cachedSteps = cache.get(specs);
  let steps = cachedSteps && cachedSteps.size < MAX_CACHED_STEPS ? cachedSteps : undefined;
  let reachedMs = instantMs;
  const stepLimit = maxSteps(specs.length);
  for (let stepCount = 0; !isBeyondHorizon(reachedMs); stepCount += 1) {
    if (stepCount >= stepLimit) return unfinished(reachedMs);
    const knownMs = steps?.get(reachedMs);
    const furtherMs = knownMs ?? step(reachedMs);
    // For a single opening that touches no other, a cache would save nothing.
    if (!steps && stepCount > 0 && furtherMs !== reachedMs) {
      steps = new Map();
      cache.set(specs, steps);
    }
    if (knownMs === undefined) steps?.set(reachedMs, furtherMs);
    if (furtherMs === reachedMs) return reachedMs;
    reachedMs = furtherMs;
  }
  return never;
}
