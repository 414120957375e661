import { z } from 'zod';
import { DEFAULT_SUSPEND_TIMEOUT_SECONDS, NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { DAY_MS, MINUTE_MS, parseDurationMs } from './duration.ts';
import { expected } from './expected.ts';
import { SUSPEND_AFTER_PATTERN } from './patterns.ts';

const WHAT = '"never", "default", or a duration of 1m to 7d such as "5m"';

/** How long a compute is idle before it sleeps; once parsed, canonical seconds: −1 never, else 60..604800. */
export const SuspendAfter = z
  .string(expected(WHAT))
  .meta({ title: 'never, default, or a duration, 1m to 7d', pattern: SUSPEND_AFTER_PATTERN })
  .describe('How long a compute is idle before it sleeps: 1m to 7d, never, or default (5m).')
  .transform((value, context) => {
    if (value === 'never') return NEVER_SUSPENDS;
    if (value === 'default') return DEFAULT_SUSPEND_TIMEOUT_SECONDS;
    const ms = parseDurationMs(value);
    if (ms !== undefined && ms >= MINUTE_MS && ms <= 7 * DAY_MS) return ms / 1000;
    context.issues.push({ code: 'custom', message: `expected ${WHAT}`, input: value });
    return z.NEVER;
  });
export type SuspendAfter = z.infer<typeof SuspendAfter>;
