/** Matches values of the header `Authorization: Bearer` (RFC 6750, 2.1) with at least 16 characters. */
const TOKEN = /^(?=.{16})[\w.~+/-]+=*$/;

/** Describes the form of a token in messages. */
export const BEARER_TOKEN_FORM = 'at least 16 letters, digits, or any of -._~+/ (= only at the end)';

export function isBearerToken(text: string): boolean {
  return TOKEN.test(text);
}
