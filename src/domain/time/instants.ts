import { DateTime } from 'luxon';

/** An instant as people and JSON read it: UTC, whole seconds, e.g. `2026-03-02T07:00:00Z`. */
export function isoInstant(ms: number): string {
  return (
    DateTime.fromMillis(Math.floor(ms / 1000) * 1000, { zone: 'utc' }).toISO({ suppressMilliseconds: true }) ??
    String(ms)
  );
}
