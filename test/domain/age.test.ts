import { expect, it } from 'vitest';
import { formatDuration } from '../../src/domain/compute/compute-units.ts';
import { ageText } from '../../src/domain/time/age.ts';

it.each([
  [-3, '0 s ago'],
  [0, '0 s ago'],
  [119, '119 s ago'],
  [120, '2 min ago'],
  [7_199, '120 min ago'],
  [7_200, '2 h ago'],
  [172_800, '2 d ago'],
])('an age of %i s is %s', (seconds, text) => {
  expect(ageText(0, 1000 * seconds)).toBe(text);
});

it('no time at all is 0s, not 0d', () => {
  expect([0, 60, 90, 86_400].map(formatDuration)).toEqual(['0s', '1m', '90s', '1d']);
});
