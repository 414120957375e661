import { z } from 'zod';
import type * as domain from '../../domain/policy.ts';
import { DAY_MS, duration } from '../schema/duration.ts';
import { expected, mapping } from '../schema/expected.ts';
import { policyBase } from '../schema/policy-base.ts';
import { At } from '../schema/time.ts';
import { resolveTime } from '../time-text.ts';
import { type FileContext, toBase } from '../to-domain.ts';

/** `kind: restart`: restarts computes, so that they pick up updates of the platform. */
export const RestartPolicy = mapping({
  ...policyBase,
  kind: z.literal('restart').describe('Restarts computes, so that they pick up updates of the platform.'),
  at: At,
  every: duration({ minMs: DAY_MS / 24, maxMs: 365 * DAY_MS, text: '1h to 365d' })
    .describe('Not again before this has passed since the last start.')
    .optional(),
  when: mapping({
    connections_below: z
      .int(expected('a number of connections'))
      .min(0, 'expected a number of connections')
      .describe('Fewer connections than this are open.')
      .optional(),
  })
    .describe('Only while this is so.')
    .optional(),
});
export type RestartPolicy = z.infer<typeof RestartPolicy>;

export function toRestart(policy: RestartPolicy, context: FileContext): domain.RestartPolicy {
  const connectionsBelow = policy.when?.connections_below;
  return {
    kind: 'restart',
    ...toBase(policy, context),
    at: policy.at.map((time) => resolveTime(time, context.timezone)),
    ...(policy.every !== undefined && { everyMs: policy.every }),
    ...(connectionsBelow !== undefined && { connectionsBelow }),
  };
}
