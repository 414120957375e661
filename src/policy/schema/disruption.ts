import { z } from 'zod';
import { DAY_MS, duration, MINUTE_MS } from './duration.ts';
import { expected, mapping } from './expected.ts';
import { Share } from './share.ts';

const CONNECTIONS = 'a number of connections';

const Rule = mapping({
  when: z.enum(['any', 'idle', 'quiet']).describe('idle: while it sleeps; quiet: while few are connected.'),
  deadline: duration({ minMs: MINUTE_MS, maxMs: 7 * DAY_MS, text: '1m to 7d' })
    .describe('How long the moment is waited for, from the start of the window on.')
    .optional(),
  // biome-ignore lint/suspicious/noThenProperty: the word of the language; what is parsed is never awaited
  then: z.enum(['apply', 'skip']).default('apply').describe('At the deadline; skip: not before the next boundary.'),
});

/** When changes that disconnect clients may be made. */
export const Disruption = mapping({
  raise: Rule.describe('Changes that raise the maximum, or only the minimum; any if absent.').optional(),
  lower: Rule.describe('All other changes of the size; idle with a deadline of 2h if absent.').optional(),
  quiet_below: z
    .int(expected(CONNECTIONS))
    .min(0, `expected ${CONNECTIONS}`)
    .describe('Fewer connections than this are quiet; 3 if absent.')
    .optional(),
  cooldown: duration({ minMs: 0, maxMs: DAY_MS, text: '0s to 1d' })
    .describe('Between two changes that restart the same compute; 10m if absent.')
    .optional(),
  at_once: Share.describe(
    'Share of the computes of the policy that may be disturbed at once, at least 5; 10% if absent.',
  ).optional(),
});
export type Disruption = z.infer<typeof Disruption>;

const MANUAL = 'respect, revert, or {respect_for: 2h}';

/** What happens to what a person has set. */
export const ManualChanges = z.union(
  [
    z.literal(['respect', 'revert']),
    mapping(
      {
        respect_for: duration({ minMs: MINUTE_MS, maxMs: 30 * DAY_MS, text: '1m to 30d' }).describe(
          'What a person has set stays so long.',
        ),
      },
      MANUAL,
    ),
  ],
  expected(MANUAL),
);
export type ManualChanges = z.infer<typeof ManualChanges>;
