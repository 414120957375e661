import { DateTime } from 'luxon';
import type { Span } from '../../domain/forecast/forecast.ts';

/** `Mon 2 Mar 2026, 00:00 to Mon 9 Mar 2026, 00:00 (Europe/Berlin)`. */
export function formatSpan({ fromMs, toMs }: Span, zone: string): string {
  return `${formatInstant(fromMs, zone)} to ${formatInstant(toMs, zone)} (${zone})`;
}

/** `Mon 2 Mar 2026, 08:00`: local time of the zone. */
export function formatInstant(ms: number, zone: string): string {
  return inZone(ms, zone).toFormat('ccc d LLL yyyy, HH:mm');
}

/** `Mon 2 Mar`. */
export function formatDay(ms: number, zone: string): string {
  return inZone(ms, zone).toFormat('ccc d LLL');
}

/** `08:00`, with seconds where there are any. */
export function formatTime(ms: number, zone: string): string {
  const time = inZone(ms, zone);
  return time.toFormat(time.second === 0 ? 'HH:mm' : 'HH:mm:ss');
}

function inZone(ms: number, zone: string): DateTime {
  return DateTime.fromMillis(ms, { zone, locale: 'en' });
}
