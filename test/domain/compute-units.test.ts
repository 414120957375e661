import { describe, expect, it } from 'vitest';
import {
  COMPUTE_SIZES_CU,
  isAllowedSize,
  maxConnectionsAt,
  nearestAllowedSizes,
} from '../../src/domain/compute-units.ts';

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
    expect(nearestAllowedSizes(0.3)).toEqual([0.25, 0.5]);
    expect(nearestAllowedSizes(17)).toEqual([16, 18]);
    expect(nearestAllowedSizes(60)).toEqual([56]);
    expect(nearestAllowedSizes(0.1)).toEqual([0.25]);
    expect(nearestAllowedSizes(1)).toEqual([0.5, 2]);
    expect([0.25, 0.3, 16, 17, 56, 58].map(isAllowedSize)).toEqual([true, false, true, false, true, false]);
  });
});
