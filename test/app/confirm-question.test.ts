import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { agreedCount } from '../../src/cli/operator/confirm.ts';
import { eventually } from '../support/eventually.ts';

/** What comes of a command when this is typed on a terminal, and what was asked. */
async function typed(text: string, count: number | undefined) {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const output = new PassThrough();
  let asked = '';
  output.on('data', (chunk) => {
    asked += chunk;
  });
  const agreed = agreedCount(count, {}, { input, output }).catch(({ message }) => message);
  await eventually(() => asked).not.toBe('');
  input.end(text);
  return [asked, await agreed];
}

const noTerminal = { input: new PassThrough(), output: new PassThrough() };

describe('a command that changes several computes', () => {
  it('asks for their number, and goes on with nothing else', async () => {
    const no = 'not confirmed: nothing was changed';
    expect(await typed('12\n', 12)).toEqual(['Type 12 to change 12 computes now: ', 12]);
    expect(await typed('11\n', 12)).toEqual(['Type 12 to change 12 computes now: ', no]);
    expect(await typed('', 12)).toEqual(['Type 12 to change 12 computes now: ', no]);
    const unknown = 'Type yes to change an unknown number of computes now: ';
    expect(await typed('yes\n', undefined)).toEqual([unknown, undefined]);
    expect(await typed('12\n', undefined)).toEqual([unknown, no]);
  });

  it('without a terminal needs the number or a word, and says which', async () => {
    const run = (count: number | undefined, flags = {}) => agreedCount(count, flags, noTerminal);
    await expect(run(12)).rejects.toThrow(
      'this changes 12 computes, and there is no terminal to ask on: add --confirm 12 or --yes',
    );
    await expect(run(undefined)).rejects.toThrow('there is no terminal to ask on: add --yes');
    await expect(run(12, { confirm: 11 })).rejects.toThrow('this changes 12 computes, not 11: nothing was changed');
    expect([await run(12, { confirm: 12 }), await run(1), await run(0)]).toEqual([12, 1, 0]);
    // Whatever the number is by then.
    expect(await run(12, { yes: true })).toBeUndefined();
  });
});
