import { expect, it } from 'vitest';
import { recommendMarkdown, recommendText } from '../../src/cli/recommend/text.ts';
import { type Finding, sleepAfter } from '../../src/domain/recommend/finding.ts';
import { aCompute } from '../support/builders.ts';

const sleeping: Finding = {
  ...{ finding: 'unused', figure: 'estimate', now: {}, proposed: {}, owner: 'unowned', risk: 'ask' },
  ...{
    compute: aCompute({ computeId: 'ep-sleeping' }),
    savesCuHours: { low: 0, mid: 0, high: 0 },
    evidence: ['unused'],
  },
};
const never: Finding = {
  ...sleeping,
  ...{ compute: aCompute({ computeId: 'ep-never' }), policy: sleepAfter('5m') },
  ...{ now: { suspend_timeout_seconds: -1 }, proposed: { suspend_timeout_seconds: 300 } },
};

it('counts unused computes that sleep and have no policy, and shows the rest', () => {
  const lines = recommendText([never, sleeping, sleeping]).split('\n');
  expect(lines.filter((line) => line.includes('/ep-'))).toEqual([
    expect.stringMatching(/ep-never +suspend_after never → 5m, unused$/),
  ]);
  expect(lines.slice(-2)).toEqual([
    'asleep anyway: 2 more, saving no CU-hours (--json lists them)',
    'with these policies, estimate: 1 finding, 0 CU-hours a month',
  ]);
});

it('tells of CU-hours where the plan is free, and of dollars elsewhere', () => {
  const usd = (mid: number) => ({ low: 0, mid, high: mid });
  const free: Finding = { ...never, savesCuHours: usd(8), savesUsd: usd(0), isFree: true };
  const paid: Finding = { ...never, savesCuHours: usd(8), savesUsd: usd(2) };
  const lines = recommendText([free, paid]).split('\n');
  expect(lines.slice(1, 3)).toEqual([
    expect.stringMatching(/^ *up to 8 CUh /),
    expect.stringMatching(/^ *up to \$2\.00 /),
  ]);
  expect(lines.slice(-2)).toEqual([
    'with these policies, estimate: 1 finding, up to $2.00 a month',
    'with these policies, estimate: 1 finding without a price, up to 8 CU-hours a month',
  ]);
});

it('has no empty table', () => {
  expect(recommendText([sleeping])).toBe('asleep anyway: 1 more, saving no CU-hours (--json lists them)');
});

it('adds up apart what no policy does', () => {
  const byHand: Finding = { ...sleeping, finding: 'awake', savesCuHours: { low: 0, mid: 3, high: 7 } };
  expect(
    recommendText([{ ...never, savesCuHours: { low: 1, mid: 1.5, high: 2 } }, byHand])
      .split('\n')
      .slice(-2),
  ).toEqual([
    'with these policies, estimate: 1 finding, 1.5 (1–2) CU-hours a month',
    'only by hand, estimate: 1 finding, 3 (0–7) CU-hours a month',
  ]);
});

it('says that nothing is known, not that there is nothing to recommend, of computes whose operations were not read', () => {
  expect(recommendText([], { computes: 306, unread: 306 })).toBe(
    'Nothing is known yet: the operations of 306 of 306 computes were not read.',
  );
  expect(recommendText([], { computes: 306, unread: 6 })).toMatch(
    /^Nothing to recommend of 300 computes; of the others nothing is known yet: the operations of 6 of 306 computes/,
  );
  expect(recommendText([never], { computes: 306, unread: 6 }).split('\n').at(-1)).toBe(
    'more may be found: the operations of 6 of 306 computes were not read',
  );
  expect(recommendText([], { computes: 306, unread: 0 })).toMatch(/^Nothing to recommend, as far as/);
  expect(recommendMarkdown([], { computes: 2, unread: 2 })).toMatch(/^### ebb recommend: nothing is known yet\n/);
});
