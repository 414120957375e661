import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable, printableJson, printableLines } from '../../src/common/safe-text.ts';

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

describe('printable', () => {
  it.each([
    ['\u001b[2Jx', '?[2Jx'],
    ['a\r\nb', 'a??b'],
    ['\u202eabc\u2066', '?abc?'],
    ['tag\u{e0041}', 'tag?'],
    ['größe 🙂', 'größe 🙂'],
  ])('shows %j as %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });
});

describe('lines', () => {
  it('keep their breaks, colors and tabs, and nothing else that steers a terminal', () => {
    const text = '\u001b[1mbold\u001b[0m\tx\n\u001b]0;title\u0007\u001b[2J\r\u009b1A\u202e';
    expect(printableLines(text)).toBe('\u001b[1mbold\u001b[0m\tx\n?]0;title??[2J??1A?');
  });

  it.each([
    ['::error::x', ': :error::x'],
    ['  ::set-output name=a::b', '  : :set-output name=a::b'],
    ['a\n::error::x', 'a\n: :error::x'],
    ['x ##[error]y', 'x ## [error]y'],
    ['\u200b::error::x', '?::error::x'],
    ['a::b', 'a::b'],
  ])('are no commands of a workflow: %j', (text, shown) => {
    expect(printableLines(text)).toBe(shown);
  });
});

describe('JSON', () => {
  it('reads back as it was, and steers nothing', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary' }), (json) => {
        const shown = printableJson(JSON.stringify(JSON.parse(json), null, 2));
        expect(JSON.parse(shown)).toEqual(JSON.parse(json));
        expect(STEERING.test(shown.replaceAll('\n', ''))).toBe(false);
      }),
    );
  });
});
