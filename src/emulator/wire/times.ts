/** An instant as bodies carry it: whole seconds, UTC. */
export function wireTime(instantMs: number): string {
  return `${new Date(instantMs).toISOString().slice(0, 19)}Z`;
}

/** An instant with microseconds, as the cursors of operation pages carry it. */
export function microsToCursor(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const fraction = String(micros % 1_000_000).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** The microseconds of a cursor; undefined if it isn't one. Fewer digits than six are filled up. */
export function cursorToMicros(cursor: string): number | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00:00)$/.exec(cursor);
  if (match === null) return undefined;
  const seconds = Date.parse(`${match[1]}Z`) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds * 1_000_000 + Number((match[2] ?? '').padEnd(6, '0'));
}
