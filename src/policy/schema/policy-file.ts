import { z } from 'zod';
import { AnyPolicy } from '../kinds/kinds.ts';
import { POLICY_LIMITS } from '../limits.ts';
import { Selector } from './policy-base.ts';
import { expected, mapping, Zone } from './scalars.ts';
import { Source } from './source.ts';

const CALENDAR = 'a calendar: {country: DE, state: BE}, {dates: [2026-12-24]} or {ical: ./days.ics}';
const DATES = 'a list of dates such as 2026-12-24 and ranges such as 2026-12-28/2026-12-31';

/** A calendar of whole dates: public holidays, a list, or a file. */
export const Calendar = mapping(
  {
    country: z
      .string(expected('a country such as DE'))
      .describe('Public holidays of this country: ISO 3166-1.')
      .optional(),
    state: z.string(expected('a state such as BE')).describe('Also those of this state, such as BE.').optional(),
    region: z.string(expected('a region')).describe('Also those of this region of the state.').optional(),
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
  CALENDAR,
).superRefine((calendar, context) => {
  const forms = [calendar.country, calendar.dates, calendar.ical].filter((form) => form !== undefined);
  if (forms.length !== 1) context.addIssue({ code: 'custom', message: `expected ${CALENDAR}` });
  else if (calendar.country === undefined && (calendar.state !== undefined || calendar.region !== undefined)) {
    context.addIssue({ code: 'custom', message: 'state and region go with country' });
  }
});
export type Calendar = z.infer<typeof Calendar>;

function versionError(found: unknown): string {
  if (found === '1') return 'expected 1, without quotes';
  if (typeof found !== 'number') return 'expected 1';
  return `version ${found} of the policy language is not known to this ebb, which reads version 1; write version: 1, or use a newer ebb`;
}

const head = {
  version: z.literal(1, { error: ({ input }) => versionError(input) }).describe('Version of the policy language.'),
  timezone: Zone.default('UTC').describe('Time zone of the times in this file, an IANA name.'),
  owner: z
    .string(expected('a name such as team-web'))
    .regex(
      /^[\w.@-][\w .@-]{0,99}$/,
      'expected a name of letters, digits, spaces, ".", "_", "@" and "-", at most 100 characters',
    )
    .describe('Who is responsible for these policies; a label of metrics, alerts and history.')
    .optional(),
  sources: z
    .record(z.string(), Source, expected('a mapping of names to sources'))
    .describe('Connection sources by name.')
    .optional(),
  calendars: z
    .record(z.string(), Calendar, expected('a mapping of names to calendars'))
    .describe('Sets of dates for only and except, by name.')
    .optional(),
  groups: z
    .record(z.string(), Selector, expected('a mapping of names to selectors'))
    .describe('Named selectors for policies of this file.')
    .optional(),
};
const POLICIES = 'a list of policies';
const FILE = 'a policy file: "version: 1", and below it "policies:" with a list';

/** A policy file with unchecked policies, so that a problem of one does not hide those of others. */
export const PolicyFileHead = mapping({ ...head, policies: z.array(z.unknown(), expected(POLICIES)) }, FILE);
export type PolicyFileHead = z.infer<typeof PolicyFileHead>;

export const PolicyFile = mapping({
  ...head,
  policies: z.array(AnyPolicy, expected(POLICIES)).max(POLICY_LIMITS.policies).describe('The policies, of any kind.'),
});
