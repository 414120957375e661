/** Days of the week as ISO counts them: 1 is Monday, 7 is Sunday. */
export type Weekday = 1 | 2 | 3 | 4 | 5 | 6 | 7;

/**
 * A window that comes back every week: on each of `days` it opens at `startMinute` and closes at `endMinute` of the day
 * `endDayOffset` days later (0: the same day; 1: over midnight; up to 7: a span of days). Minutes are of the local
 * wall clock, 0..1440 (1440 is 24:00).
 */
export interface WeeklyWindow {
  kind: 'weekly';
  days: readonly Weekday[];
  startMinute: number;
  endMinute: number;
  endDayOffset: number;
  /** An IANA name, checked. */
  zone: string;
}

/** One interval of time, [startMs, endMs), in milliseconds since the epoch. */
export interface AbsoluteInterval {
  kind: 'interval';
  startMs: number;
  endMs: number;
}

export interface Always {
  kind: 'always';
}

/** When a window is open. All are half-open: the start belongs to the window, the end does not. */
export type TimeSpec = WeeklyWindow | AbsoluteInterval | Always;
