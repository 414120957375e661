import { readFileSync, statSync } from 'node:fs';
import { BEARER_TOKEN_FORM, isBearerToken } from '../../common/bearer-token.ts';
import type { Result } from '../../common/result.ts';
import { isShowable } from '../../common/safe-text.ts';
import { MOST_CHARACTERS } from '../../ports/operator.ts';

/** A token, and whose it is. */
export interface NamedToken {
  token: string;
  /** Absent for one that people share. */
  name?: string;
}

const MOST_BYTES = 64 * 1024;

/** The tokens of a file: a line each, `NAME: TOKEN` or `TOKEN`; `#` begins a comment. A problem never holds a token. */
export function readTokenFile(path: string): Result<readonly NamedToken[]> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return {
      ok: false,
      problem: `the token file ${path} can't be read (${codeOf(error)}); check the path and its permissions`,
    };
  }
  if (text.length > MOST_BYTES) return { ok: false, problem: `the token file ${path} is larger than 64 KiB` };
  return parseTokens(text, path);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}

/** Another text for another state of the file, also where another one is moved into its place. */
export function tokenFileVersion(path: string): string {
  try {
    const { mtimeMs, ctimeMs, ino, size } = statSync(path);
    return `${mtimeMs} ${ctimeMs} ${ino} ${size}`;
  } catch (error) {
    return codeOf(error);
  }
}

function parseTokens(text: string, path: string): Result<readonly NamedToken[]> {
  const tokens: NamedToken[] = [];
  for (const [index, written] of text.split(/\r?\n/).entries()) {
    const line = written.trim();
    if (line === '' || line.startsWith('#')) continue;
    const where = `${path}:${index + 1}`;
    const parsed = parseLine(line);
    if (!parsed) return { ok: false, problem: `${where}: ${EXPECTED}` };
    if (tokens.some(({ token }) => token === parsed.token)) {
      return { ok: false, problem: `${where}: the same token stands in a line above; make another one` };
    }
    tokens.push(parsed);
  }
  return tokens.length > 0
    ? { ok: true, value: tokens }
    : { ok: false, problem: `${path}: holds no token; ${EXPECTED}` };
}

const EXPECTED = `write NAME: TOKEN, with a token of ${BEARER_TOKEN_FORM}; make one with: openssl rand -hex 32`;

function parseLine(line: string): NamedToken | undefined {
  const [last = '', ...before] = line.split(':').toReversed();
  const token = last.trim();
  if (!isBearerToken(token) || before.length > 1) return undefined;
  const name = before[0]?.trim();
  if (name === undefined) return { token };
  return isShowable(name) && name.length <= MOST_CHARACTERS.owner ? { token, name } : undefined;
}
