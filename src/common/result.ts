/** The value, or one line that says what is wrong and what to do. */
export type Result<T> = { ok: true; value: T } | { ok: false; problem: string };

/** Parses JSON; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
