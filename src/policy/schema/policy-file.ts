import { z } from 'zod';
import { AnyPolicy } from '../kinds/kinds.ts';
import { POLICY_LIMITS } from '../limits.ts';
import { Calendar } from './calendar.ts';
import { expected, mapping } from './expected.ts';
import { Selector } from './selector.ts';
import { Source } from './source.ts';
import { Zone } from './zone.ts';

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

/** A policy file without a look into its policies, so that what is wrong with one hides nothing of the others. */
export const PolicyFileHead = mapping({ ...head, policies: z.array(z.unknown(), expected(POLICIES)) }, FILE);
export type PolicyFileHead = z.infer<typeof PolicyFileHead>;

/** A policy file. */
export const PolicyFile = mapping({
  ...head,
  policies: z.array(AnyPolicy, expected(POLICIES)).max(POLICY_LIMITS.policies).describe('The policies, of any kind.'),
});
export type PolicyFile = z.infer<typeof PolicyFile>;
