/** An instant in bodies: whole seconds, UTC. */
export function wireTime(instantMs: number): string {
  return `${new Date(instantMs).toISOString().slice(0, -5)}Z`;
}

/** An optional instant in bodies. JSON omits undefined fields. */
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
