const DAY_SECONDS = 86_400;
const DAYS_KEPT = 10_000;
const TWO_DIGITS = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));
const days = new Map<number, string>();

/** `2026-11-23T` for days since the epoch. Cached, since a page has thousands of instants on few days. */
function dayText(day: number): string {
  const cached = days.get(day);
  if (cached !== undefined) return cached;
  const text = new Date(day * DAY_SECONDS * 1000).toISOString().slice(0, 11);
  if (days.size >= DAYS_KEPT) days.clear();
  days.set(day, text);
  return text;
}

/** An instant in bodies: whole seconds, UTC. */
export function wireTime(instantMs: number): string {
  const seconds = Math.floor(instantMs / 1000);
  const day = Math.floor(seconds / DAY_SECONDS);
  const ofDay = seconds - day * DAY_SECONDS;
  const minutes = Math.floor(ofDay / 60);
  return `${dayText(day)}${TWO_DIGITS[Math.floor(minutes / 60)]}:${TWO_DIGITS[minutes % 60]}:${TWO_DIGITS[ofDay % 60]}Z`;
}

/** The same for an optional instant; JSON omits undefined fields. */
export function wireTimeIfAny(instantMs: number | undefined): string | undefined {
  return instantMs === undefined ? undefined : wireTime(instantMs);
}

/** An instant with microseconds: the cursor of operation pages. */
export function microsToCursor(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const fraction = String(micros % 1_000_000).padStart(6, '0');
  return `${wireTime(seconds * 1000).slice(0, -1)}.${fraction}Z`;
}

/** The microseconds of a cursor; undefined if it is invalid. Fewer than six decimals are padded with zeros. */
export function cursorToMicros(cursor: string): number | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00:00)$/.exec(cursor);
  if (match === null) return undefined;
  const seconds = Date.parse(`${match[1]}Z`) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds * 1_000_000 + Number((match[2] ?? '').padEnd(6, '0'));
}
