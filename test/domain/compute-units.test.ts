import { describe, expect, it } from 'vitest';
import {
  COMPUTE_SIZES_CU,
  impossibleSizeText,
  isAllowedSize,
  maxConnectionsAt,
  nearestSizesText,
  sizeProblems,
} from '../../src/domain/compute/compute-units.ts';

describe('compute units', () => {
  it('are 0.25, 0.5, the whole numbers to 16, and the even ones to 56', () => {
    expect(COMPUTE_SIZES_CU).toHaveLength(38);
    expect(COMPUTE_SIZES_CU.slice(0, 3)).toEqual([0.25, 0.5, 1]);
    expect(COMPUTE_SIZES_CU.slice(16, 20)).toEqual([15, 16, 18, 20]);
    expect(COMPUTE_SIZES_CU.at(-1)).toBe(56);
  });

  it('give the connections of the specification, which never fall with the size', () => {
    expect([0.25, 0.5, 1, 8, 9, 56].map(maxConnectionsAt)).toEqual([112, 225, 450, 3604, 4000, 4000]);
    const connections = COMPUTE_SIZES_CU.map(maxConnectionsAt);
    expect(connections).toEqual(connections.toSorted((a, b) => a - b));
  });

  it('name the sizes next to one that is not allowed', () => {
    expect(impossibleSizeText(0.3)).toBe('0.3 CU is not a size; the nearest are 0.25 and 0.5');
    expect([17, 60, 0.1, Number.NaN].map(nearestSizesText)).toEqual([
      '; the nearest are 16 and 18',
      '; the nearest is 56',
      '; the nearest is 0.25',
      '',
    ]);
    expect([0.25, 0.3, 16, 17, 56, 58].map(isAllowedSize)).toEqual([true, false, true, false, true, false]);
  });

  it('make ranges that ascend, end at 16 CU and span 8 CU at most; a single size may be any', () => {
    const fine = [
      [56, 56],
      [0.25, 8],
      [8, 16],
    ];
    expect(fine.flatMap(([minCu = 0, maxCu = 0]) => sizeProblems({ minCu, maxCu }))).toEqual([]);
    expect(sizeProblems({ minCu: 3.5, maxCu: 3.5 })).toEqual(['3.5 CU is not a size; the nearest are 3 and 4']);
    expect(sizeProblems({ minCu: 17, maxCu: 57 })).toHaveLength(2);
    expect(sizeProblems({ minCu: 4, maxCu: 1 })).toEqual([expect.stringContaining('write the smaller one first')]);
    expect(sizeProblems({ minCu: 14, maxCu: 18 })).toEqual([expect.stringContaining('ends at 16 CU at most')]);
    expect(sizeProblems({ minCu: 7, maxCu: 16 })).toEqual([expect.stringContaining('spans 8 CU at most, this one 9')]);
  });
});
