import { z } from 'zod';
import { Disruption, ManualChanges } from './disruption.ts';
import { expected } from './expected.ts';
import { Selector } from './selector.ts';

const NAME = 'a name of letters, digits, ".", "_" and "-", at most 64 characters';

const NAME_PATTERN = /^[A-Za-z0-9][\w.-]{0,63}$/;
const SELECT = 'a selector such as {projects: ["web-*"]}, or the name of a group';

export const PolicyName = z
  .string(expected(NAME))
  .regex(NAME_PATTERN, `expected ${NAME}`)
  .describe('Unique over all files; a label of metrics, logs and history.');
export type PolicyName = z.infer<typeof PolicyName>;

/** The keys that every kind of policy has. */
export const policyBase = {
  name: PolicyName,
  select: z
    .union([z.string().regex(NAME_PATTERN, `expected ${SELECT}`), Selector], expected(SELECT))
    .describe('Which computes the policy selects: a selector, or the name of one under groups.'),
  priority: z
    .int(expected('a whole number from -1000000 to 1000000'))
    .min(-1_000_000)
    .max(1_000_000)
    .default(0)
    .describe('Among open windows of several policies the higher priority decides.'),
  mode: z
    .enum(['enforce', 'observe'])
    .default('enforce')
    .describe('observe: evaluated, shown and counted, but nothing is written.'),
  enabled: z.boolean(expected('true or false')).default(true).describe('false: checked, then ignored.'),
  disruption: Disruption.describe('When disruptive changes are allowed.').optional(),
  manual_changes: ManualChanges.describe('What happens to manual changes.').optional(),
};
