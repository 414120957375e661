import { z } from 'zod';
import { POLICY_LIMITS } from '../limits.ts';
import { expected, mapping, notSupported } from './expected.ts';
import { HeadroomPolicy } from './headroom.ts';
import { SchedulePolicy } from './schedule.ts';
import { Source } from './source.ts';
import { Zone } from './zone.ts';

/** Every kind of policy that the language knows. */
export const POLICY_KINDS = { schedule: SchedulePolicy, headroom: HeadroomPolicy } as const;

export const AnyPolicy = z.discriminatedUnion('kind', [SchedulePolicy, HeadroomPolicy]);
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
  calendars: notSupported('calendars are'),
  groups: notSupported('groups are'),
};
const POLICIES = 'a list of policies';

/** A policy file without a look into its policies, so that what is wrong with one hides nothing of the others. */
export const PolicyFileHead = mapping({ ...head, policies: z.array(z.unknown(), expected(POLICIES)) });
export type PolicyFileHead = z.infer<typeof PolicyFileHead>;

/** A policy file. */
export const PolicyFile = mapping({
  ...head,
  policies: z.array(AnyPolicy, expected(POLICIES)).max(POLICY_LIMITS.policies),
});
export type PolicyFile = z.infer<typeof PolicyFile>;
