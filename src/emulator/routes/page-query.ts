type PageLimit = { ok: true; limit: number } | { ok: false; message: string };

/** The `limit` of a page; `max` of the specification, `fallback` if none was sent. */
export function readLimit(text: string | undefined, bounds: { fallback: number; max: number }): PageLimit {
  if (text === undefined) return { ok: true, limit: bounds.fallback };
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= bounds.max) return { ok: true, limit };
  return { ok: false, message: `limit must be an integer from 1 to ${bounds.max}` };
}
