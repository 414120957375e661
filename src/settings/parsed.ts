/** What a text means, or in a few words why it means nothing and what to write instead. */
export type Parsed<T> = { ok: true; value: T } | { ok: false; problem: string };
