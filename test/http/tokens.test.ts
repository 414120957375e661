import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import { memoryLog } from '../support/memory-log.ts';

const ANN = 'token-of-ann-0123456789';
const BOB = 'token-of-bob-0123456789';
const LOCAL = 'known-to-this-machine';

const folder = mkdtempSync(join(tmpdir(), 'ebb-tokens-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function tokensOf(text: string, shared?: string) {
  files += 1;
  const file = join(folder, `tokens-${files}`);
  writeFileSync(file, text);
  const log = memoryLog();
  const hidden: string[] = [];
  const tokens = createTokens({ log, local: LOCAL, shared, file, hide: (token) => void hidden.push(token) });
  return { tokens, log, hidden, rewrite: (other: string) => writeFileSync(file, other) };
}

describe('tokens of a file', () => {
  it('have names; the shared one and that of this machine have none', () => {
    const { tokens, hidden } = tokensOf(`# people\n\nann: ${ANN}\n  ${BOB}  \n`, 'shared-token-0123456789');
    expect(tokens.problem()).toBeUndefined();
    expect(tokens.holderOf(ANN)).toEqual({ name: 'ann' });
    for (const token of [BOB, LOCAL, 'shared-token-0123456789'])
      expect(tokens.holderOf(token)).toEqual({ name: undefined });
    for (const token of ['', 'ann', `${ANN}x`, ANN.slice(0, -1), `ann: ${ANN}`])
      expect(tokens.holderOf(token)).toBeUndefined();
    expect(hidden).toEqual(expect.arrayContaining([ANN, BOB, LOCAL, 'shared-token-0123456789']));
  });

  it('count from the next request on when the file changes, and no longer once they are gone', () => {
    const { tokens, rewrite } = tokensOf(`ann: ${ANN}\n`);
    expect(tokens.holderOf(BOB)).toBeUndefined();
    rewrite(`bob: ${BOB}\n# ann has left\n`);
    expect([tokens.holderOf(BOB), tokens.holderOf(ANN)]).toEqual([{ name: 'bob' }, undefined]);
  });

  it('are not accepted while a line is invalid, which is logged once and without them', () => {
    const { tokens, log, rewrite } = tokensOf(`ann: ${ANN}\n`);
    rewrite(`ann: ${ANN}\nbob: short\n`);
    expect([tokens.holderOf(ANN), tokens.holderOf(ANN)]).toEqual([undefined, undefined]);
    expect(tokens.holderOf(LOCAL)).toBeDefined();
    expect(log.lines.map(({ level }) => level)).toEqual(['error']);
    expect(log.lines[0]?.message).toMatch(/tokens-\d+:2: write NAME: TOKEN, .*none of its tokens is accepted$/);
    expect(JSON.stringify(log.lines)).not.toContain('short');
    rewrite(`ann: ${ANN}\nbob: ${BOB}\n`);
    expect(tokens.holderOf(BOB)).toEqual({ name: 'bob' });
  });

  it.each([
    ['nothing', '# nobody\n', /holds no token/],
    ['a blank in a token', 'ann: token of some length 1\n', /:1: write NAME: TOKEN/],
    ['a colon in a token', `ann: ${ANN}:${BOB}\n`, /:1: write NAME: TOKEN/],
    ['a name that cannot be shown', `a\u0007nn: ${ANN}\n`, /:1: write NAME: TOKEN/],
    ['a name that is too long to own anything', `${'n'.repeat(81)}: ${ANN}\n`, /:1: write NAME: TOKEN/],
    ['a token without its name', `: ${ANN}\n`, /:1: write NAME: TOKEN/],
    ['a token twice', `ann: ${ANN}\nbob: ${ANN}\n`, /:2: the same token is in an earlier line/],
  ])('are refused with %s', (_what, text, problem) => {
    expect(tokensOf(text).tokens.problem()).toMatch(problem);
  });

  it('cannot be read where there is no file', () => {
    const tokens = createTokens({ log: memoryLog(), local: LOCAL, file: join(folder, 'nowhere') });
    expect(tokens.problem()).toMatch(/can't be read \(ENOENT\); check the path/);
  });
});
