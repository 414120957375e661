/** What a command says of the number of computes that it concerns, also if that is 0 or not known. */
import { expect, it } from 'vitest';
import { impactText } from '../../src/cli/approve.ts';
import { selectorOf } from '../../src/cli/operator/parse-flags.ts';
import { coverText } from '../../src/cli/operator/show.ts';

it('of an approval: how many are disconnected, none, or that it is not known', () => {
  const counts = [
    { count: 12 },
    { count: 12, later: 8 },
    { count: 9, later: 9 },
    { count: 1, later: 0 },
    { count: 0 },
    {},
  ];
  const why = 'such as those that ebb has just discovered or restarted';
  expect(counts.map(impactText)).toEqual([
    'disconnects 12 computes at once',
    `disconnects 12 computes, 4 at once and 8 later, ${why}`,
    `disconnects 9 computes, none at once and 9 later, ${why}`,
    'disconnects 1 compute at once',
    'disconnects 0 computes at once',
    'how many computes it disconnects is not known: no daemon reports that it is staged',
  ]);
});

it('of a freeze: how many it covers now, and whether there may be more', () => {
  const partial = true as const;
  expect([{ covers: 2 }, { covers: 2, partial }, { covers: 0 }, { covers: 0, partial }, {}].map(coverText)).toEqual([
    '; 2 computes',
    '; 2 computes; not all projects are read yet',
    '; it matches no compute now, and applies to new ones',
    '; it matches no compute that is known yet; not all projects are read yet',
    '',
  ]);
});

it.each(['projects=api-000[12]*', 'computes=ep-{a,b}'])('of wildcards of a shell (%s): which there are', (text) => {
  expect(() => selectorOf([text])).toThrow(
    /^--select: ".*": only \* and \? are wildcards; write a glob for each choice/,
  );
});
