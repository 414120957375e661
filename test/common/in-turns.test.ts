import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { filterInTurns, jsonInTurns, mapInTurns } from '../../src/common/in-turns.ts';

const ALL = Array.from({ length: 5000 }, (_, index) => index);

const TURNS = { nextTurn };

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe('work on a whole fleet in turns', () => {
  it('gives the JSON of a document, of which long lists are written in turns', async () => {
    const document = {
      at: 'now',
      none: undefined,
      nothing: null,
      list: ALL.map((id) => ({ id })),
      holes: [undefined, 1],
      empty: [],
    };
    expect(textOf(await jsonInTurns(document, TURNS))).toBe(JSON.stringify(document));
    expect(textOf(await jsonInTurns({}, TURNS))).toBe('{}');
    let written = 0;
    const counted = ALL.map(() => ({ toJSON: () => ++written }));
    const text = jsonInTurns({ counted }, TURNS);
    await nextTurn();
    expect(written).toBeLessThanOrEqual(ALL.length / 50);
    expect(JSON.parse(textOf(await text))).toEqual({ counted: ALL.map((index) => index + 1) });
  });

  it('gives what map and filter give, in the same order', async () => {
    expect(await mapInTurns(ALL, (one) => one * 2, TURNS)).toEqual(ALL.map((one) => one * 2));
    expect(await filterInTurns(ALL, (one) => one % 3 === 0, TURNS)).toEqual(ALL.filter((one) => one % 3 === 0));
    expect(await filterInTurns([], () => true, TURNS)).toEqual([]);
  });

  it('lets other work go on before a fiftieth of the fleet is done', async () => {
    let done = 0;
    const count = () => {
      done += 1;
      return false;
    };
    const counted = filterInTurns(ALL, count, TURNS);
    await nextTurn();
    expect(done).toBeLessThanOrEqual(ALL.length / 50);
    await counted;
    expect(done).toBe(ALL.length);
  });
});
