import { z } from 'zod';
import { expected, notSupported } from './expected.ts';
import { Selector } from './selector.ts';

const NAME = 'a name of letters, digits, ".", "_" and "-", at most 64 characters';

export const PolicyName = z
  .string(expected(NAME))
  .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, `expected ${NAME}`)
  .describe('Unique over all files; a label of metrics, logs and history.');
export type PolicyName = z.infer<typeof PolicyName>;

/** The keys that every kind of policy has. */
export const policyBase = {
  name: PolicyName,
  select: Selector.describe('Which computes the policy is about.'),
  priority: z
    .int(expected('a whole number from -1000000 to 1000000'))
    .min(-1_000_000)
    .max(1_000_000)
    .default(0)
    .describe('The higher one decides where open windows of several policies disagree.'),
  mode: z
    .enum(['enforce', 'observe'])
    .default('enforce')
    .describe('observe: evaluated, shown and counted, but nothing is written.'),
  enabled: z.boolean(expected('true or false')).default(true).describe('false: checked, then left out of the set.'),
  disruption: notSupported('disruption is'),
};
