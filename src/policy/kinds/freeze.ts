import { z } from 'zod';
import type * as domain from '../../domain/policy/kinds/freeze.ts';
import { policyBase } from '../schema/policy-base.ts';
import { expected, mapping } from '../schema/scalars.ts';
import { At } from '../schema/time.ts';
import { resolveTime } from '../time-text.ts';
import { type FileContext, toBase } from '../to-domain.ts';
import { kindSyntax } from './kind.ts';

const FreezePolicy = mapping({
  ...policyBase,
  kind: z.literal('freeze').describe('Nothing is written to these computes.'),
  at: At,
  allow: z
    .array(z.enum(['raise']), expected('a list: [raise]'))
    .describe('Changes that are still written: raises of the size.')
    .default([]),
});
type FreezePolicy = z.infer<typeof FreezePolicy>;

function toFreeze(policy: FreezePolicy, context: FileContext): domain.FreezePolicy {
  return {
    kind: 'freeze',
    ...toBase(policy, context),
    at: policy.at.map((time) => resolveTime(time, context.timezone)),
    allowRaise: policy.allow.includes('raise'),
  };
}

export const freezeSyntax = kindSyntax({
  schema: FreezePolicy,
  toDomain: toFreeze,
  times: ({ at }) => [{ specs: at, at: ['at'] }],
  settings: () => [],
  onlyRaises: false,
});
