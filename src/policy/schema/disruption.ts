import { z } from 'zod';
import { DAY_MS, duration, MINUTE_MS } from './duration.ts';
import { expected, mapping } from './expected.ts';
import { Share } from './share.ts';

const CONNECTIONS = 'a number of connections';

const Rule = mapping(
  {
    when: z
      .enum(['any', 'idle', 'quiet'])
      .describe('any: at any time; idle: while the compute sleeps; quiet: while it has few connections.'),
    deadline: duration({ minMs: MINUTE_MS, maxMs: 7 * DAY_MS, text: '1m to 7d' })
      .describe('How long to wait, from the start of the window.')
      .optional(),
    // biome-ignore lint/suspicious/noThenProperty: the word of the language; what is parsed is never awaited
    then: z
      .enum(['apply', 'skip'])
      .default('apply')
      .describe('At the deadline: apply the change, or skip it until the next boundary.'),
  },
  'a rule such as {when: idle, deadline: 2h}',
);

/** When disruptive changes are allowed. */
export const Disruption = mapping(
  {
    raise: Rule.describe('Changes that raise the maximum, or only the minimum; any if absent.').optional(),
    lower: Rule.describe('All other size changes; idle with a deadline of 2h if absent.').optional(),
    quiet_below: z
      .int(expected(CONNECTIONS))
      .min(0, `expected ${CONNECTIONS}`)
      .describe('A compute with fewer connections than this is quiet; 3 if absent.')
      .optional(),
    cooldown: duration({ minMs: 0, maxMs: DAY_MS, text: '0s to 1d' })
      .describe('Minimum time between two changes that restart the same compute; 10m if absent.')
      .optional(),
    at_once: Share.describe(
      "Share of the policy's computes that may be restarted at the same time, at least 5; 10% if absent.",
    ).optional(),
  },
  'a mapping such as {lower: {when: idle}, cooldown: 10m}',
);
export type Disruption = z.infer<typeof Disruption>;

const MANUAL = 'respect, revert, or {respect_for: 2h}';

/** What happens to manual changes. */
export const ManualChanges = z.union(
  [
    z.literal(['respect', 'revert']),
    mapping(
      {
        respect_for: duration({ minMs: MINUTE_MS, maxMs: 30 * DAY_MS, text: '1m to 30d' }).describe(
          'How long a manual change is respected.',
        ),
      },
      MANUAL,
    ),
  ],
  expected(MANUAL),
);
export type ManualChanges = z.infer<typeof ManualChanges>;
