import { inspect } from 'node:util';
import { decodeUrlPart } from '../common/decode.ts';

const REDACTED = '[redacted]';

/** A value that no log, error, JSON or template string shows. Call `reveal` only where the plain value is used. */
export interface Secret {
  reveal(): string;
  toString(): string;
  toJSON(): string;
  [inspect.custom](): string;
}

/** Wraps a secret in a closure, so that no walk over properties finds it. */
export function secret(value: string): Secret {
  return {
    reveal: () => value,
    toString: () => REDACTED,
    toJSON: () => REDACTED,
    [inspect.custom]: () => REDACTED,
  };
}

/** The forms of a password in a URL: as written and percent-decoded. */
export function asWrittenAndDecoded(value: string): string[] {
  return value === '' ? [] : [...new Set([value, decodeUrlPart(value)])];
}

/** The texts to redact for a connection string or token: the whole text and, if it is a URL, its password. */
export function secretPartsOf(value: string): string[] {
  const password = URL.canParse(value) ? new URL(value).password : '';
  return [value, ...asWrittenAndDecoded(password)];
}
