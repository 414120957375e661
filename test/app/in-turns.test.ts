import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { filterInTurns, mapInTurns } from '../../src/app/operator/in-turns.ts';

const ALL = Array.from({ length: 5000 }, (_, index) => index);

describe('work on a whole fleet in turns', () => {
  it('gives what map and filter give, in the same order', async () => {
    expect(await mapInTurns(ALL, (one) => one * 2)).toEqual(ALL.map((one) => one * 2));
    expect(await filterInTurns(ALL, (one) => one % 3 === 0)).toEqual(ALL.filter((one) => one % 3 === 0));
    expect(await filterInTurns([], () => true)).toEqual([]);
  });

  it('lets other work go on before a fiftieth of the fleet is done', async () => {
    let done = 0;
    const counted = filterInTurns(ALL, () => {
      done += 1;
      return false;
    });
    await nextTurn();
    expect(done).toBeLessThanOrEqual(ALL.length / 50);
    await counted;
    expect(done).toBe(ALL.length);
  });
});
