import { expect, it } from 'vitest';
import { recommendText } from '../../src/cli/recommend/text.ts';
import type { Finding } from '../../src/domain/recommend/finding.ts';
import { sleepAfter } from '../../src/domain/recommend/simple.ts';
import { aCompute } from '../support/builders.ts';

const sleeping: Finding = {
  ...{ finding: 'unused', figure: 'estimate', now: {}, proposed: {}, owner: 'unowned', risk: 'ask' },
  ...{ compute: aCompute({ computeId: 'ep-sleeping' }), savesCuHours: { low: 0, high: 0 }, evidence: ['unused'] },
};
const never: Finding = {
  ...sleeping,
  ...{ compute: aCompute({ computeId: 'ep-never' }), policy: sleepAfter('5m') },
};

it('counts unused computes that sleep and have no policy, and shows the rest', () => {
  const lines = recommendText([never, sleeping, sleeping]).split('\n');
  expect(lines.filter((line) => line.includes('/ep-'))).toEqual([
    expect.stringMatching(/ep-never +unused; policy recommended-sleep-after-5m$/),
  ]);
  expect(lines.slice(-2)).toEqual([
    'unused, but asleep anyway: 2 more, which save no CU-hours (--json lists them)',
    'estimate: 1 finding, 0 CU-hours a month',
  ]);
});

it('has no empty table', () => {
  expect(recommendText([sleeping])).toBe(
    'unused, but asleep anyway: 1 more, which save no CU-hours (--json lists them)',
  );
});
