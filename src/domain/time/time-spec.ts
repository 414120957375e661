/** Days of the week as ISO counts them: 1 is Monday, 7 is Sunday. */
export type Weekday = 1 | 2 | 3 | 4 | 5 | 6 | 7;

/** A named set of whole dates, whatever the zone. */
export interface Calendar {
  name: string;
  /** Days since 1970-01-01, ascending, each once. */
  days: readonly number[];
}

/** The local dates on which a window may start: in all of `only` (if given) and in none of `except`. */
export interface DateFilter {
  only?: readonly Calendar[];
  except?: readonly Calendar[];
}

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
  /** The local date on which an opening starts decides. */
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

/** Opens whenever `cron` fires, for `forMs` of elapsed time. Openings that overlap are one. */
export interface CronWindow {
  kind: 'cron';
  /** Five fields, checked, single blanks between them. */
  cron: string;
  forMs: number;
  zone: string;
  dates?: DateFilter;
}

/** Open when the latest firing of either expression was one of `startCron`; one at the same local time counts as a start. */
export interface CronSwitch {
  kind: 'cron-switch';
  startCron: string;
  endCron: string;
  zone: string;
  /** Starts on other dates do not count. */
  dates?: DateFilter;
}

/** The time of a window. All are half-open: the start belongs to the window, the end does not. */
export type TimeSpec = WeeklyWindow | AbsoluteInterval | Always | CronWindow | CronSwitch;
