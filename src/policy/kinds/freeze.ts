import { z } from 'zod';
import type * as domain from '../../domain/policy.ts';
import { expected, mapping } from '../schema/expected.ts';
import { policyBase } from '../schema/policy-base.ts';
import { At } from '../schema/time.ts';
import { resolveTime } from '../time-text.ts';
import { type FileContext, toBase } from '../to-domain.ts';

/** `kind: freeze`: nothing is written to these computes. */
export const FreezePolicy = mapping({
  ...policyBase,
  kind: z.literal('freeze').describe('Nothing is written to these computes.'),
  at: At,
  allow: z
    .array(z.enum(['raise']), expected('a list: [raise]'))
    .describe('What is written all the same.')
    .default([]),
});
export type FreezePolicy = z.infer<typeof FreezePolicy>;

export function toFreeze(policy: FreezePolicy, context: FileContext): domain.FreezePolicy {
  return {
    kind: 'freeze',
    ...toBase(policy, context),
    at: policy.at.map((time) => resolveTime(time, context.timezone)),
    allowRaise: policy.allow.includes('raise'),
  };
}
