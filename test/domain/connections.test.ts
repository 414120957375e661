import { describe, expect, it } from 'vitest';
import { COMPUTE_SIZES_CU } from '../../src/domain/compute/compute-units.ts';
import {
  CONNECTION_PROFILES,
  type ConnectionProfile,
  tableProfile,
} from '../../src/domain/connections/connection-profile.ts';
import { type ConnectionSample, connectionsAt, viewConnections } from '../../src/domain/connections/connections.ts';
import { aCompute, at } from '../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const MINUTE_MS = 60_000;
const sample = (minutesAgo: number, connections = 1): ConnectionSample => ({
  atMs: NOON - minutesAgo * MINUTE_MS,
  connections,
});
const view = (samples: ConnectionSample[], compute = aCompute()) =>
  viewConnections(samples, compute, { instantMs: NOON, windowMs: 30 * MINUTE_MS });

describe('connection profiles', () => {
  const { specification, 'vendor-2026': vendor } = CONNECTION_PROFILES;
  const at = (profile: ConnectionProfile, minCu: number, maxCu = minCu) => profile.maxConnections({ minCu, maxCu });

  it('of the specification follow the maximum alone', () => {
    expect(specification).toMatchObject({ name: 'specification', reserved: 0 });
    expect([at(specification, 0.25), at(specification, 0.25, 8), at(specification, 9), at(specification, 56)]).toEqual([
      112, 3604, 4000, 4000,
    ]);
  });

  it('of now follow min(max, 8·min), and keep seven connections', () => {
    expect(vendor).toMatchObject({ name: 'vendor-2026', reserved: 7 });
    expect([0.25, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 56].map((cu) => at(vendor, cu))).toEqual([
      104, 209, 419, 839, 1258, 1678, 2098, 2517, 2937, 3357, 3776, 4000, 4000,
    ]);
    expect([at(vendor, 0.25, 2), at(vendor, 0.25, 8), at(vendor, 0.5, 8)]).toEqual([839, 839, 1678]);
  });

  it('of a table give that of the next smaller size, and below the first that of the first', () => {
    const table = tableProfile({
      name: 'mine',
      reserved: 3,
      byCu: new Map([
        [4, 400],
        [1, 100],
      ]),
    });
    expect([0.25, 1, 3, 4, 56].map((cu) => at(table, 0.25, cu))).toEqual([100, 100, 100, 400, 400]);
    expect(table).toMatchObject({ name: 'mine', reserved: 3 });
    expect(at(tableProfile({ name: 'empty', reserved: 0, byCu: new Map() }), 1)).toBe(0);
  });

  it('never fall where an end of the range rises', () => {
    for (const profile of [specification, vendor]) {
      const byMax = COMPUTE_SIZES_CU.map((maxCu) => at(profile, 0.25, maxCu));
      const byMin = COMPUTE_SIZES_CU.map((minCu) => at(profile, minCu, 56));
      expect(byMax).toEqual(byMax.toSorted((a, b) => a - b));
      expect(byMin).toEqual(byMin.toSorted((a, b) => a - b));
    }
  });
});

describe('what is known of connections', () => {
  it('is the latest count and the highest of the window, both ends included', () => {
    expect(view([sample(31, 99), sample(30, 7), sample(1, 3), sample(-1, 50)])).toMatchObject({ now: 3, peak: 7 });
    expect(view([sample(31, 99), sample(1, 3)])).toMatchObject({ now: 3, peak: 3 });
  });

  it('is nothing where the latest count is older than five minutes', () => {
    expect(view([sample(5)])).toBeDefined();
    expect(view([{ atMs: NOON - 5 * MINUTE_MS - 1, connections: 1 }])).toBeUndefined();
    expect(view([])).toBeUndefined();
    expect(viewConnections(undefined, aCompute(), { instantMs: NOON, windowMs: 1 })).toBeUndefined();
  });

  it('is whole when no five minutes of the window were missed', () => {
    const minutes = (...ago: number[]) => view(ago.map((minute) => sample(minute)))?.isWholeWindowKnown;
    expect(minutes(25, 20, 15, 10, 5, 0)).toBe(true);
    expect(minutes(24, 20, 15, 10, 5, 0)).toBe(false);
    expect(minutes(25, 20, 14, 10, 5, 0)).toBe(false);
    expect(minutes(40, 25, 20, 15, 10, 5)).toBe(true);
  });

  it('is whole since the compute started, when it started within the window', () => {
    const started = aCompute({ startedAtMs: NOON - 6 * MINUTE_MS });
    expect(view([sample(1)], started)?.isWholeWindowKnown).toBe(true);
    expect(view([sample(0)], started)?.isWholeWindowKnown).toBe(false);
  });

  it('is zero now, and whole, while the compute sleeps; what was in the window still counts', () => {
    const asleep = aCompute({ state: 'idle' });
    expect(view([], asleep)).toEqual({ now: 0, peak: 0, isWholeWindowKnown: true });
    const samples = [{ ...sample(10, 40), maxConnections: 100 }];
    expect(view(samples, asleep)).toEqual({ now: 0, peak: 40, isWholeWindowKnown: true });
  });

  it('takes what the compute reports with the latest count', () => {
    expect(
      view([
        { ...sample(2), maxConnections: 100 },
        { ...sample(1), maxConnections: 200 },
      ])?.reportedMaxConnections,
    ).toBe(200);
    expect(view([{ ...sample(2), maxConnections: 100 }, sample(1)])).not.toHaveProperty('reportedMaxConnections');
  });
});

describe('how many are connected now', () => {
  const older = sample(2, 9);
  const newer = sample(1, 4);

  it.each([
    ['the later one is asked first', [[newer], [older]]],
    ['the later one is asked last', [[older], [newer]]],
    ['one of them knows nothing', [[], [newer]]],
    ['one of them is ahead of the clock', [[newer], [sample(-1, 7)]]],
    ['one of them is stale', [[newer], [sample(6, 7)]]],
  ])('is what the latest count of any source says: %s', (_what, sources) => {
    const history = new Map(sources.map((samples, index) => [`s${index}`, samples]));
    expect(connectionsAt(history, aCompute(), NOON)).toBe(4);
  });

  it('is nobody while the compute sleeps, and unknown without a count', () => {
    const history = new Map([['counts', [newer]]]);
    expect(connectionsAt(history, aCompute({ state: 'idle' }), NOON)).toBe(0);
    expect(connectionsAt(undefined, aCompute({ state: 'idle' }), NOON)).toBe(0);
    expect(connectionsAt(undefined, aCompute(), NOON)).toBeUndefined();
    expect(connectionsAt(history, aCompute(), NOON + 4 * MINUTE_MS)).toBe(4);
    expect(connectionsAt(history, aCompute(), NOON + 4 * MINUTE_MS + 1)).toBeUndefined();
  });
});
