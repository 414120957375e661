import { DateTime } from 'luxon';

/** Lengths of time in milliseconds. Here a day has 24 hours; a local day may have 23 or 25. */
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const WEEK_MS = 7 * DAY_MS;

/** An instant as people and JSON read it: UTC, whole seconds, e.g. `2026-03-02T07:00:00Z`. */
export function isoInstant(ms: number): string {
  return (
    DateTime.fromMillis(Math.floor(ms / 1000) * 1000, { zone: 'utc' }).toISO({ suppressMilliseconds: true }) ??
    String(ms)
  );
}

/** Milliseconds since the epoch of an ISO instant; without an offset it is UTC. NaN for any other text. */
export function msOfIso(iso: string): number {
  return DateTime.fromISO(iso, { zone: 'utc' }).toMillis();
}
