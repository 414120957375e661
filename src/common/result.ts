/** What was asked for, or one line that says what is wrong and what to do. */
export type Result<T> = { ok: true; value: T } | { ok: false; problem: string };
