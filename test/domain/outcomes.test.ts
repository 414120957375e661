import { expect, it } from 'vitest';
import { withOutcomes } from '../../src/domain/records/outcomes.ts';

const line = (at: string, request_id: string | null, ...reasons: [code: string, message: string][]) => ({
  ...{ at, compute_id: 'ep-1', request_id },
  reasons: reasons.map(([code, message]) => ({ code, message })),
});
const CONFIRMED = ['confirmed', 'no clear answer came, and it took effect'] as [string, string];
const CHANGE = [
  ['window_open', 'size 1 → 2 CU'],
  ['unknown', 'no answer came'],
] as [string, string][];

it('the line of a change without an answer has what became of it, the newest line first', () => {
  const lines = [
    line('8:02', 'r-2', ['window_open', 'x']),
    line('8:01', 'r-1', CONFIRMED),
    line('8:00', 'r-1', ...CHANGE),
  ];
  expect(withOutcomes(lines)).toEqual([
    lines[0],
    line('8:00', 'r-1', ...CHANGE, ['confirmed', 'it took effect (seen at 8:01)']),
  ]);
});

it.each([
  ['the change is not among the lines', [line('8:01', 'r-1', CONFIRMED), line('8:00', 'r-0', ...CHANGE)]],
  [
    'it is of another compute',
    [line('8:01', 'r-1', CONFIRMED), { ...line('8:00', 'r-1', ...CHANGE), compute_id: 'ep-2' }],
  ],
  ['the request is unknown', [line('8:01', null, CONFIRMED), line('8:00', null, ...CHANGE)]],
])('it stays a line where %s', (_case, lines) => {
  expect(withOutcomes(lines)).toEqual(lines);
});
