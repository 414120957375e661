import { z } from 'zod';
import { FreezePolicy } from '../kinds/freeze.ts';
import { HeadroomPolicy } from '../kinds/headroom.ts';
import { LimitsPolicy } from '../kinds/limits.ts';
import { RestartPolicy } from '../kinds/restart.ts';
import { SchedulePolicy } from '../kinds/schedule.ts';
import { POLICY_LIMITS } from '../limits.ts';
import { Calendar } from './calendar.ts';
import { expected, mapping } from './expected.ts';
import { Selector } from './selector.ts';
import { Source } from './source.ts';
import { Zone } from './zone.ts';

/** Every kind of policy that the language knows. */
export const AnyPolicy = z.discriminatedUnion('kind', [
  SchedulePolicy,
  HeadroomPolicy,
  LimitsPolicy,
  RestartPolicy,
  FreezePolicy,
]);
export type AnyPolicy = z.infer<typeof AnyPolicy>;

const head = {
  version: z.literal(1, expected('1')).describe('Version of the policy language.'),
  timezone: Zone.default('UTC').describe('Zone of the times in this file, an IANA name.'),
  owner: z
    .string(expected('a name such as team-web'))
    .regex(
      /^[\w.@-][\w .@-]{0,99}$/,
      'expected a name of letters, digits, spaces, ".", "_", "@" and "-", at most 100 characters',
    )
    .describe('Who answers for these policies; a label of metrics, alerts and history.')
    .optional(),
  sources: z
    .record(z.string(), Source, expected('a mapping of names to sources'))
    .describe('Where connection counts come from, by name.')
    .optional(),
  calendars: z
    .record(z.string(), Calendar, expected('a mapping of names to calendars'))
    .describe('Sets of whole dates for only and except, by name.')
    .optional(),
  groups: z
    .record(z.string(), Selector, expected('a mapping of names to selectors'))
    .describe('Selectors that policies of this file name.')
    .optional(),
};
const POLICIES = 'a list of policies';

/** A policy file without a look into its policies, so that what is wrong with one hides nothing of the others. */
export const PolicyFileHead = mapping({ ...head, policies: z.array(z.unknown(), expected(POLICIES)) });
export type PolicyFileHead = z.infer<typeof PolicyFileHead>;

/** A policy file. */
export const PolicyFile = mapping({
  ...head,
  policies: z.array(AnyPolicy, expected(POLICIES)).max(POLICY_LIMITS.policies).describe('The policies, of any kind.'),
});
export type PolicyFile = z.infer<typeof PolicyFile>;
