import { z } from 'zod';
import type * as domain from '../../domain/policy/kinds/restart.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import { policyBase } from '../schema/policy-base.ts';
import { duration, expected, mapping } from '../schema/scalars.ts';
import { At } from '../schema/time.ts';
import { resolveTime } from '../time-text.ts';
import { type FileContext, toBase } from '../to-domain.ts';
import { kindSyntax } from './kind.ts';

const RestartPolicy = mapping({
  ...policyBase,
  kind: z.literal('restart').describe('Restarts computes, so that they get updates of the platform.'),
  at: At,
  every: duration({ minMs: HOUR_MS, maxMs: 365 * DAY_MS, text: '1h to 365d' })
    .describe('Minimum time since the last start.')
    .optional(),
  when: mapping(
    {
      connections_below: z
        .int(expected('a number of connections'))
        .min(0, 'expected a number of connections')
        .describe('Fewer connections than this are open.')
        .optional(),
    },
    '{connections_below: 5}',
  )
    .describe('The condition for a restart.')
    .optional(),
});
type RestartPolicy = z.infer<typeof RestartPolicy>;

function toRestart(policy: RestartPolicy, context: FileContext): domain.RestartPolicy {
  const connectionsBelow = policy.when?.connections_below;
  return {
    kind: 'restart',
    ...toBase(policy, context),
    at: policy.at.map((time) => resolveTime(time, context.timezone)),
    ...(policy.every !== undefined && { everyMs: policy.every }),
    ...(connectionsBelow !== undefined && { connectionsBelow }),
  };
}

export const restartSyntax = kindSyntax({
  schema: RestartPolicy,
  toDomain: toRestart,
  times: ({ at }) => [{ specs: at, at: ['at'] }],
  settings: () => [],
  onlyRaises: false,
});
