import { z } from 'zod';
import type * as domain from '../../domain/policy/kinds/headroom.ts';
import { DAY_MS, MINUTE_MS } from '../../domain/time/units.ts';
import { policyBase } from '../schema/policy-base.ts';
import { duration, expected, mapping, Share, singleSize } from '../schema/scalars.ts';
import { type FileContext, toBase } from '../to-domain.ts';
import { kindSyntax } from './kind.ts';

const HeadroomPolicy = mapping({
  ...policyBase,
  kind: z.literal('headroom').describe('Raises the maximum so that enough connections stay free.'),
  connections: z.string(expected('the name of a source')).describe('The name of a connection source, from sources.'),
  target: Share.describe('Share of the usable connections that may be in use.'),
  critical: Share.optional().describe('From this share on a raise does not wait for a safe window.'),
  max_size: singleSize('a size in CU such as 8').describe('The largest maximum, in CU, that this policy sets.'),
  may_raise_min: z.boolean(expected('true or false')).default(false).describe('The minimum may be raised too.'),
  scale_down: mapping(
    {
      after: duration({ minMs: MINUTE_MS, maxMs: 7 * DAY_MS, text: '1m to 7d' }).describe(
        'The stabilisation window; its highest count is what must be covered.',
      ),
    },
    '{after: 30m}',
  )
    .optional()
    .describe('How long a smaller size must have been enough before the size goes back; 30m if absent.'),
  act: z.enum(['apply', 'advise']).default('apply').describe('advise: report only.'),
});
type HeadroomPolicy = z.infer<typeof HeadroomPolicy>;

const DEFAULT_SCALE_DOWN_AFTER_MS = 30 * MINUTE_MS;

function toHeadroom(policy: HeadroomPolicy, context: FileContext): domain.HeadroomPolicy {
  return {
    kind: 'headroom',
    ...toBase(policy, context),
    connections: policy.connections,
    targetShare: policy.target,
    ...(policy.critical !== undefined && { criticalShare: policy.critical }),
    maxCu: policy.max_size,
    mayRaiseMin: policy.may_raise_min,
    scaleDownAfterMs: policy.scale_down?.after ?? DEFAULT_SCALE_DOWN_AFTER_MS,
    act: policy.act,
  };
}

export const headroomSyntax = kindSyntax({
  schema: HeadroomPolicy,
  toDomain: toHeadroom,
  times: () => [],
  settings: ({ maxCu }) => [{ field: 'size', at: ['max_size'], maxCu }],
  onlyRaises: true,
});
