import { DateTime } from 'luxon';

/** Durations in milliseconds. A day has 24 hours here; a local day may have 23 or 25. */
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const WEEK_MS = 7 * DAY_MS;

export const DAY_MINUTES = 24 * 60;

/** Formats an instant for people and JSON: UTC, whole seconds, e.g. `2026-03-02T07:00:00Z`. */
export function isoInstant(ms: number): string {
  // biome-ignore lint/style/noRestrictedGlobals: it reads no clock. Luxon takes ten times as long, and an export has 200,000 instants.
  const date = new Date(Math.floor(ms / 1000) * 1000);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString().replace('.000', '');
}

/** Parses an ISO instant (UTC if it has no offset) to milliseconds since the epoch; NaN for any other text. */
export function msOfIso(iso: string): number {
  return DateTime.fromISO(iso, { zone: 'utc' }).toMillis();
}
