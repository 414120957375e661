/**
 * What a set of policy files may be at most. Far above what people write, and low enough that a hostile file is refused
 * before it costs anything.
 */
export const POLICY_LIMITS = {
  /** Bytes of one file. */
  fileBytes: 512 * 1024,
  /** Lexical parts of one file: words, marks, line breaks. */
  tokens: 200_000,
  /** Files of one set. */
  files: 1000,
  /** Policies of one set, disabled ones included. */
  policies: 5000,
  /** Times of one policy, of all its windows. */
  timesOfPolicy: 1000,
  /** Steps, each about a microsecond, that a policy of ordinary windows takes; a set may have as many of these as of policies. */
  stepsOfOrdinaryPolicy: 500,
  /** Steps that it takes to ask all other policies of a set what they say. */
  stepsOfSet: 50_000,
  /** Different cron expressions of one set. */
  crons: 10_000,
  /** Days of the calendars of one set, counted once for each combination of calendars that windows name. */
  daysOfFilters: 1_000_000,
  /** Calendars of one file. */
  calendars: 100,
  /** Days of one calendar. */
  calendarDays: 20_000,
  /** Characters of all the iCalendar files of one set, each counted once. */
  icalCharacters: 4 * 1024 * 1024,
  /** Lists and mappings inside each other. */
  depth: 24,
  /** Problems that are reported of one file. */
  problemsPerFile: 100,
} as const;
