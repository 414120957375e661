import { z } from 'zod';
import { isAllowedSize, nearestAllowedSizes } from '../../domain/compute-units.ts';
import { DAY_MS, duration, MINUTE_MS } from './duration.ts';
import { expected, mapping } from './expected.ts';
import { policyBase } from './policy-base.ts';

const PERCENT = 'a share such as "70%", from 1% to 100%';

/** A share as people write it; once parsed, a number in (0, 1]. */
const Percent = z
  .string(expected(PERCENT))
  .regex(/^([1-9]\d?|100)%$/, `expected ${PERCENT}`)
  .transform((text) => Number(text.slice(0, -1)) / 100);

const SingleSize = z.number(expected('a size in CU such as 8')).superRefine((cu, context) => {
  if (isAllowedSize(cu)) return;
  const message = `${cu} CU is not a size; the nearest are ${nearestAllowedSizes(cu).join(' and ')}`;
  context.addIssue({ code: 'custom', message });
});

/** `kind: headroom`: connections that must stay free. */
export const HeadroomPolicy = mapping({
  ...policyBase,
  kind: z.literal('headroom').describe('Raises the maximum so that enough connections stay free.'),
  connections: z.string(expected('the name of a source')).describe('A source of connection counts, from sources.'),
  target: Percent.describe('Share of the usable connections that may be in use.'),
  critical: Percent.optional().describe('From here on a raise does not wait for a good moment.'),
  max_size: SingleSize.describe('The largest maximum, in CU, that this policy raises to.'),
  may_raise_min: z.boolean(expected('true or false')).optional().describe('The minimum may be raised too.'),
  scale_down: mapping({ after: duration({ minMs: MINUTE_MS, maxMs: 7 * DAY_MS, text: '1m to 7d' }) })
    .optional()
    .describe('How long less must have been enough before it goes back.'),
  act: z.enum(['apply', 'advise']).optional().describe('advise: report only.'),
});
export type HeadroomPolicy = z.infer<typeof HeadroomPolicy>;
