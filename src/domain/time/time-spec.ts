/** ISO weekdays: 1 is Monday, 7 is Sunday. */
export type Weekday = 1 | 2 | 3 | 4 | 5 | 6 | 7;

/** A named set of dates, independent of zones. */
export interface Calendar {
  name: string;
  /** Days since 1970-01-01, ascending and unique. */
  days: readonly number[];
}

/** The local dates on which a window may start: those in any calendar of `only` (if given) and in none of `except`. */
export interface DateFilter {
  only?: readonly Calendar[];
  except?: readonly Calendar[];
}

/**
 * A weekly window: on each of `days` it opens at `startMinute` and closes at `endMinute` of the day
 * `endDayOffset` days later (0: the same day; 1: over midnight; up to 7: a span of days). Minutes are of the local
 * wall clock, 0..1440 (1440 is 24:00).
 */
export interface WeeklyWindow {
  kind: 'weekly';
  days: readonly Weekday[];
  startMinute: number;
  endMinute: number;
  endDayOffset: number;
  /** A valid IANA name. */
  zone: string;
  /** A filter on the local date on which an opening starts. */
  dates?: DateFilter;
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

/** Opens whenever `cron` fires, for `forMs` of elapsed time. Overlapping openings are joined. */
export interface CronWindow {
  kind: 'cron';
  /** A valid expression of five fields, separated by single spaces. */
  cron: string;
  forMs: number;
  zone: string;
  dates?: DateFilter;
}

/** Open while `startCron` has fired more recently than `endCron`, or both at the same local time. */
export interface CronSwitch {
  kind: 'cron-switch';
  startCron: string;
  endCron: string;
  zone: string;
  /** Starts on dates that the filter excludes are ignored. */
  dates?: DateFilter;
}

/** The time of a window. All are half-open: they include the start, not the end. */
export type TimeSpec = WeeklyWindow | AbsoluteInterval | Always | CronWindow | CronSwitch;
