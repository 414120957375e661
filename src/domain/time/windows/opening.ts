/** One opening [startMs, endMs) of a window; infinite if it has no start or end. */
export interface Opening {
  startMs: number;
  endMs: number;
}

/** The functions of one kind of window. An opening touches an instant if start ≤ instant ≤ end, so also when it just ends. */
export interface WindowKind<Spec> {
  isOpenAt(spec: Spec, instantMs: number): boolean;
  /** The latest end of the openings that touch an instant; undefined if none does. */
  endTouching(spec: Spec, instantMs: number): number | undefined;
  /** The earliest start of the openings that touch an instant; undefined if none does. */
  startTouching(spec: Spec, instantMs: number): number | undefined;
  /**
   * The first start of an opening after an instant at which the window is closed; undefined if it never opens. If calendars exclude very
   * many days, it may instead be an instant up to which the window does not open.
   */
  nextStartAfter(spec: Spec, instantMs: number): number | undefined;
  /**
   * The latest end of an opening up to an instant at which the window is closed; undefined if none is known. If calendars exclude very
   * many days, it may instead be an instant since which the window has been closed.
   */
  latestEndUntil(spec: Spec, instantMs: number): number | undefined;
}

/** The latest instant of all items; undefined if none has one. Called very often, so it allocates nothing. */
export function latest<T>(all: readonly T[], instantOf: (one: T) => number | undefined): number | undefined {
  let latestMs: number | undefined;
  for (const one of all) {
    const ms = instantOf(one);
    if (ms !== undefined && (latestMs === undefined || ms > latestMs)) latestMs = ms;
  }
  return latestMs;
}

/** The earliest instant of all items; undefined if none has one. */
export function earliest<T>(all: readonly T[], instantOf: (one: T) => number | undefined): number | undefined {
  let earliestMs: number | undefined;
  for (const one of all) {
    const ms = instantOf(one);
    if (ms !== undefined && (earliestMs === undefined || ms < earliestMs)) earliestMs = ms;
  }
  return earliestMs;
}
