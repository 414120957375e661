import { inspect } from 'node:util';

const REDACTED = '[redacted]';

/** A value that no log, error, JSON or template string shows; only `reveal` gives it, at the place where it is used. */
export interface Secret {
  reveal(): string;
  toString(): string;
  toJSON(): string;
  [inspect.custom](): string;
}

/** Wraps a key, token, or URL with a password. The value lives in a closure, so that no walk over properties finds it. */
export function secret(value: string): Secret {
  return {
    reveal: () => value,
    toString: () => REDACTED,
    toJSON: () => REDACTED,
    [inspect.custom]: () => REDACTED,
  };
}

/** The forms in which a password of a URL may show up: as written and percent-decoded. */
export function asWrittenAndDecoded(value: string): string[] {
  if (value === '') return [];
  try {
    return [...new Set([value, decodeURIComponent(value)])];
  } catch {
    return [value];
  }
}
