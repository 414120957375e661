import { describe, expect, it } from 'vitest';
import { differencesOf, type Segment } from '../../src/domain/forecast/forecast.ts';

/** `0-4: 2` for a segment from 0 to 4 of 2 CU. */
function segments(text: string): Segment[] {
  return [...text.matchAll(/(\d+)-(\d+): (\d+)/g)].map(([, from, to, cu]) => ({
    ...{ fromMs: Number(from), toMs: Number(to), policies: [`of ${cu}`] },
    ...{ minCu: Number(cu), maxCu: Number(cu), suspendTimeoutSeconds: 300 },
  }));
}

describe('two forecasts', () => {
  it.each([
    ['that are the same do not differ', '0-4: 2, 4-9: 1', '0-4: 2, 4-9: 1', []],
    ['differ where a change comes later', '0-4: 2, 4-9: 1', '0-6: 2, 6-9: 1', ['4-6: 1 → 2']],
    ['differ where a change comes earlier', '0-6: 2, 6-9: 1', '0-4: 2, 4-9: 1', ['4-6: 2 → 1']],
    [
      'differ piece by piece, where one has a value all along',
      '0-9: 1',
      '0-2: 1, 2-4: 2, 4-6: 1, 6-9: 3',
      ['2-4: 1 → 2', '6-9: 1 → 3'],
    ],
    [
      'differ piece by piece, the other way round',
      '0-2: 1, 2-4: 2, 4-6: 1, 6-9: 3',
      '0-9: 1',
      ['2-4: 2 → 1', '6-9: 3 → 1'],
    ],
    ['differ all along', '0-4: 1, 4-9: 2', '0-4: 2, 4-9: 3', ['0-4: 1 → 2', '4-9: 2 → 3']],
    [
      'differ in stretches that neither of them has',
      '0-3: 1, 3-7: 2, 7-9: 1',
      '0-5: 2, 5-9: 1',
      ['0-3: 1 → 2', '5-7: 2 → 1'],
    ],
    ['of nothing do not differ', '', '', []],
  ])('%s', (_what, before, after, expected) => {
    const found = differencesOf(segments(before), segments(after));
    expect(found.map((one) => `${one.fromMs}-${one.toMs}: ${one.before.minCu} → ${one.after.minCu}`)).toEqual(expected);
  });

  it('that only somebody else decides are the same', () => {
    const [one] = segments('0-9: 1');
    expect(differencesOf(one ? [one] : [], one ? [{ ...one, policies: ['another'] }] : [])).toEqual([]);
  });
});
