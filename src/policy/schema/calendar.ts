import { z } from 'zod';
import { expected, mapping } from './expected.ts';

const WHAT = 'a calendar: {country: DE, state: BE}, {dates: [2026-12-24]} or {ical: ./days.ics}';
const DATES = 'a list of dates such as 2026-12-24 and ranges such as 2026-12-28/2026-12-31';

/** A calendar of whole dates, as it is written: public holidays, a list, or a file. */
export const Calendar = mapping(
  {
    country: z
      .string(expected('a country such as DE'))
      .describe('Public holidays of this country: ISO 3166-1.')
      .optional(),
    state: z.string(expected('a state such as BE')).describe('And of this state.').optional(),
    region: z.string(expected('a region')).describe('And of this region.').optional(),
    dates: z
      .array(z.string(expected(DATES)), expected(DATES))
      .min(1, 'expected at least one date')
      .max(1000, 'a calendar lists at most 1000 dates and ranges')
      .describe('Dates, and ranges of dates; both ends are included.')
      .optional(),
    ical: z
      .string(expected('a path such as ./days.ics'))
      .regex(/^(?!\/)[\w./ -]{1,200}\.ics$/, 'expected a path relative to this file that ends in .ics')
      .describe('An iCalendar file of whole-day events, next to this file.')
      .optional(),
  },
  WHAT,
).superRefine((calendar, context) => {
  const given = [calendar.country, calendar.dates, calendar.ical].filter((form) => form !== undefined);
  if (given.length !== 1) context.addIssue({ code: 'custom', message: `expected ${WHAT}` });
  else if (calendar.country === undefined && (calendar.state ?? calendar.region) !== undefined) {
    context.addIssue({ code: 'custom', message: 'state and region go with country' });
  }
});
export type Calendar = z.infer<typeof Calendar>;
