/** What was asked for, or one line that says what is wrong and what to do. */
export type Result<T> = { ok: true; value: T } | { ok: false; problem: string };

/** What a text says, or undefined for one that is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
