import { DateTime } from 'luxon';
import { parseDurationMs } from '../../policy/schema/scalars.ts';
import { UserError } from '../fail.ts';

/** An instant, or a duration before now: milliseconds since the epoch. An instant without an offset is UTC. */
export function parseWhen(flag: string, text: string, nowMs: number): number {
  const ago = parseDurationMs(text);
  if (ago !== undefined) return nowMs - ago;
  const instant = DateTime.fromISO(text, { zone: 'utc' });
  if (instant.isValid) return instant.toMillis();
  throw new UserError(`${flag}: ${text} is neither a duration such as 7d nor an instant such as 2026-11-01T00:00Z`);
}
