/** Values that the header `Authorization: Bearer` can carry (RFC 6750, 2.1), of at least 16 characters. */
const TOKEN = /^(?=.{16})[\w.~+/-]+=*$/;

/** The form of a token in words for people. */
export const BEARER_TOKEN_FORM = 'at least 16 letters, digits, or any of -._~+/ (= only at the end)';

export function isBearerToken(text: string): boolean {
  return TOKEN.test(text);
}
