import { describe, expect, it } from 'vitest';
import type { ComputeSettings } from '../../src/domain/compute/compute.ts';
import { recordNotifications } from '../../src/domain/notifications/of-record.ts';
import type { ComputeRecord, Intent } from '../../src/domain/records/compute-record.ts';
import { withFailure } from '../../src/domain/records/failures.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const COMPUTE = aCompute({ computeId: 'ep-1', projectId: 'p-1', projectName: 'web', minCu: 2, maxCu: 2 });
const PLACE = { projectId: 'p-1', projectName: 'web', computeId: 'ep-1' };

const told = (before: ComputeRecord, after: ComputeRecord, compute = COMPUTE) =>
  recordNotifications({ compute, before, after, nowMs: 9_000 });

const intent = (also: Partial<Intent> = {}): Intent => ({
  ...{ fields: { minCu: 2, maxCu: 2 }, atMs: 5_000, policy: 'office', dropped: 7 },
  ...also,
});

describe('what people are told when a record changes', () => {
  it('is nothing where nothing happened', () => {
    const mark = { fields: { minCu: 4, maxCu: 4 }, seenAtMs: 5, raises: true };
    const record = aRecord({ manual: { size: mark } });
    expect(told(record, { ...record, lastDecidedAtMs: 7 })).toEqual([]);
  });

  it('is a change by somebody else, once', () => {
    const before = aRecord({ lastApplied: { minCu: 2, maxCu: 2 } });
    const after = { ...before, manual: { size: { fields: { minCu: 4, maxCu: 4 }, seenAtMs: 5_000, raises: true } } };
    expect(told(before, after)).toEqual([
      {
        ...{ ...PLACE, id: 'manual_change:ep-1:size:5000', kind: 'manual_change', atMs: 5_000 },
        text: 'ep-1: size changed by a person: 2 CU → 4 CU',
        command: 'ebb release ep-1',
      },
    ]);
    expect(told(after, { ...after, lastDecidedAtMs: 7 })).toEqual([]);
  });

  it('is a change by somebody else of what a hold sets, with the hold, and what overrides or ends them', () => {
    const place = { projectId: 'p-1', computeId: 'ep-1', id: 'h-1', owner: 'ann', reason: 'load' };
    const hold = { ...place, createdAtMs: 4_000, expiresAtMs: 3_600_000, size: { minCu: 2, maxCu: 2 } };
    const before = aRecord({ lastApplied: { minCu: 2, maxCu: 2 } });
    const after = { ...before, manual: { size: { fields: { minCu: 1, maxCu: 1 }, seenAtMs: 5_000, raises: false } } };
    const textWith = (held: typeof hold) =>
      recordNotifications({ compute: COMPUTE, before, after, nowMs: 9_000, holds: [held] })[0]?.text;
    const change = 'ep-1: size changed by a person: 2 CU → 1 CU';
    const kept = 'ann holds it (size 2 CU) until 1970-01-01T01:00:00Z';
    expect(textWith(hold)).toBe(`${change}; ${kept}: a new hold overrides the change, ebb release ends both`);
    expect(textWith({ ...hold, createdAtMs: 6_000 })).toBe(change);
    const { size: _, ...ofTimeout } = { ...hold, suspendTimeoutSeconds: 300 };
    expect(recordNotifications({ compute: COMPUTE, before, after, nowMs: 9_000, holds: [ofTimeout] })[0]?.text).toBe(
      change,
    );
  });

  it('is one message of a size and a timeout that somebody else has changed together', () => {
    const mark = { seenAtMs: 5_000, raises: true };
    const manual = {
      size: { ...mark, fields: { minCu: 4, maxCu: 4 } },
      suspend_timeout: { ...mark, fields: { suspendTimeoutSeconds: 600 } },
    };
    const found = told(aRecord(), aRecord({ manual }));
    expect(found.map(({ text }) => text)).toEqual([
      'ep-1: size changed by a person: 0.25-2 CU → 4 CU; suspend_after changed by a person: 5m → 10m',
    ]);
  });

  it('is a change that disconnected clients, by the daemon that made it or by one that finds it pending', () => {
    const { intent: _, ...after } = aRecord({ intent: intent(), lastApplied: { minCu: 2, maxCu: 2 } });
    const found = told(aRecord({ intent: intent() }), after);
    expect(found).toMatchObject([
      { ...PLACE, id: 'connections_dropped:ep-1:5000', kind: 'connections_dropped', policy: 'office' },
    ]);
    expect(found[0]?.text).toBe('ep-1 was changed to 2 CU, which disconnected its clients (7 when last counted)');
  });

  it('says of a change that was not announced why, also where nobody knows how many clients there were', () => {
    const textOf = (also: Partial<Intent>) => {
      const { intent: _, ...after } = aRecord({ intent: intent(also), lastApplied: { minCu: 2, maxCu: 2 } });
      return told(aRecord({ intent: intent(also) }), after)[0]?.text;
    };
    expect(textOf({ unannounced: 'other', dropped: 0 })).toBe(
      'ep-1 was changed to 2 CU, which disconnected its clients, if it had any; it was not announced: no schedule made it due',
    );
    expect(textOf({ unannounced: 'person' })).toContain(
      'its clients (7 when last counted); it was not announced: a person has asked',
    );
    const lost = '; it is not known to have been announced: the store lost its data at 1970-01-01T00:00:03Z';
    expect(textOf({ unannounced: 'boundary', announcementsLostAtMs: 3_000 })).toMatch(new RegExp(`${lost}$`));
    expect(textOf({ unannounced: 'other', announcementsLostAtMs: 3_000 })).toContain(
      `${lost}; no schedule made it due`,
    );
  });

  it('says once of an announced restart that comes late to whom it was announced, and why', () => {
    const late = { owner: "web's", announcedAtMs: 60_000, restarts: 4, left: 3, why: 'it had failed: 503' };
    const before = aRecord({ intent: { ...intent({ late, atMs: 300_000 }), dropped: 0 } });
    const { intent: _, ...after } = { ...before, lastApplied: { minCu: 2, maxCu: 2 } };
    // All others were made in time.
    const alone = aRecord({ intent: intent({ late: { ...late, left: 1 }, atMs: 300_000 }) });
    expect(told(alone, after).at(-1)?.text).toBe(
      "1 of 4 restarts of web's that were announced for 1970-01-01T00:01:00Z comes late: ep-1 at 1970-01-01T00:05:00Z; reason: it had failed: 503",
    );
    const several = { ...late, announcedToMs: 120_000 };
    expect(told(aRecord({ intent: intent({ late: several, atMs: 300_000 }) }), after).at(-1)).toMatchObject({
      id: "change_coming:late:web's:60000",
      text: expect.stringContaining('announced for 1970-01-01T00:01:00Z to 1970-01-01T00:02:00Z come late: from'),
    });
    expect(told(before, after)).toEqual([
      {
        ...{
          id: "change_coming:late:web's:60000",
          kind: 'change_coming',
          atMs: 9_000,
          owner: "web's",
          policy: 'office',
        },
        text: "at most 3 of 4 restarts of web's that were announced for 1970-01-01T00:01:00Z come late: from 1970-01-01T00:05:00Z on, ep-1 first; reason: it had failed: 503",
        command: "ebb audit --owner 'web'\\''s' --since 1970-01-01T00:01:00Z",
      },
    ]);
  });

  it('is no such change where it did not take effect, is still pending, or disconnected nobody that is known', () => {
    const pending = aRecord({ intent: intent() });
    const { intent: _, ...answered } = pending;
    expect(told(pending, answered, { ...COMPUTE, minCu: 4, maxCu: 4 })).toEqual([]);
    expect(told(pending, pending)).toEqual([]);
    const { dropped: __, ...nobody } = intent();
    expect(told(aRecord({ intent: nobody }), answered)).toEqual([]);
  });

  it('is a raise that did not wait, because few connections were left', () => {
    const pending = aRecord({ intent: intent({ dropped: 0, urgent: true }) });
    const { intent: _, ...answered } = pending;
    expect(told(pending, answered)).toMatchObject([
      { ...PLACE, id: 'raised_by_critical:ep-1:5000', kind: 'raised_by_critical', policy: 'office' },
    ]);
  });

  it('is a compute that keeps failing, when it becomes so', () => {
    const failure = { desired: { minCu: 2, maxCu: 2 }, message: '500: out of luck', atMs: 5_000, isPermanent: false };
    const [zero, one, two, three] = [0, 1, 2, 3].map((count) =>
      Array.from({ length: count }).reduce<ComputeRecord>((record) => withFailure(record, failure), aRecord()),
    ) as [ComputeRecord, ComputeRecord, ComputeRecord, ComputeRecord];
    expect([told(zero, one), told(one, two)]).toEqual([[], []]);
    const degraded = told(two, three);
    expect(degraded).toMatchObject([{ ...PLACE, id: 'degraded:ep-1:5000', kind: 'degraded' }]);
    expect(degraded[0]?.text).toContain('500: out of luck');
    expect(told(three, { ...three, lastDecidedAtMs: 9 })).toEqual([]);
  });

  it.each([
    [{ suspendTimeoutSeconds: 60 }, "the timeout of ep-1 can't be set to 1m"],
    [{ minCu: 1, maxCu: 2 }, "the size of ep-1 can't be set to 1-2 CU"],
    [{ minCu: 1, maxCu: 2, suspendTimeoutSeconds: 60 }, "the size and timeout of ep-1 can't be set to 1-2 CU and 1m"],
    [{}, "ep-1 can't be restarted"],
  ])('names what keeps failing: %o', (desired, what) => {
    const failure = { desired, message: '412: not permitted', atMs: 5_000, isPermanent: false };
    // A single failure of another group is no news.
    const other = { ...failure, desired: 'maxCu' in desired ? {} : { minCu: 8, maxCu: 8 } };
    const failing = [2, 3].map((count) =>
      Array.from({ length: count }).reduce<ComputeRecord>(
        (record) => withFailure(record, failure),
        withFailure(aRecord(), other),
      ),
    ) as [ComputeRecord, ComputeRecord];
    const text = `${what} (3 failures, last: 412: not permitted); it is tried again in an hour`;
    expect(told(...failing)).toMatchObject([{ kind: 'degraded', text }]);
  });

  it('is each group of fields that keeps failing, once', () => {
    const failure = (desired: Partial<ComputeSettings>, atMs: number) => ({
      ...{ desired, atMs, message: '412: not permitted', isPermanent: true },
    });
    const [size, timeout] = [{ minCu: 1, maxCu: 2 }, { suspendTimeoutSeconds: 60 }];
    const steps = [failure(size, 1), failure(size, 2), failure(timeout, 3), failure(timeout, 4), failure(size, 5)];
    let record = aRecord();
    const texts = steps.flatMap((step) => {
      const before = record;
      record = withFailure(before, step);
      return told(before, record).map(({ text }) => text.split(' can')[0]);
    });
    expect(texts).toEqual(['the size of ep-1', 'the timeout of ep-1']);
  });
});
