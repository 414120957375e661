import { expect, it } from 'vitest';
import { decide } from '../../src/domain/decide/decide.ts';
import { wantedSince, withWanted } from '../../src/domain/evaluate/wanted-since.ts';
import { aCompute, aRecord, aSchedule, at, aWindow, compiled } from '../support/builders.ts';

const EIGHT = at('2026-03-02T08:00:00Z');
const NOON = at('2026-03-02T12:00:00Z');
const input = (policies: ReturnType<typeof compiled>, instantMs = NOON) => {
  const known = { policies, compute: aCompute(), baseline: undefined };
  return { ...known, decision: decide({ ...known, instantMs }) };
};
const windows = [{ at: [aWindow()], size: { minCu: 1, maxCu: 4 } }];
const day = input(compiled(aSchedule({ windows, otherwise: { suspendTimeoutSeconds: 60 } })));

it('what is wanted is remembered once, since its boundary, and since ever where it has none', () => {
  const known = withWanted({ ...day, record: aRecord() });
  expect(known).toEqual(
    aRecord({
      wanted: {
        size: { fields: { minCu: 1, maxCu: 4 }, sinceMs: EIGHT, notedAtMs: NOON },
        suspend_timeout: { fields: { suspendTimeoutSeconds: 60 }, sinceMs: 0, notedAtMs: NOON },
      },
    }),
  );
  expect(withWanted({ ...day, record: known })).toBe(known);
});

it('an absent desired value is remembered as well, and only what is new is replaced', () => {
  const silent = input(compiled(aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds: 60 } })));
  const before = withWanted({ ...day, record: aRecord() });
  const after = withWanted({ ...silent, record: before });
  expect(after.wanted).toEqual({ ...before.wanted, size: { fields: {}, sinceMs: NOON } });
  expect(after.wanted?.suspend_timeout).toBe(before.wanted?.suspend_timeout);
});

it('without a record, or before anything was remembered, only the policies know since when', () => {
  for (const record of [undefined, aRecord()]) expect(wantedSince({ ...day, record }, 'size')).toBe(EIGHT);
  expect(wantedSince({ ...day, record: undefined }, 'suspend_timeout')).toBe(Number.NEGATIVE_INFINITY);
});
