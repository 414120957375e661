import { describe, expect, it } from 'vitest';
import type { Compute, ComputeSettings, Size } from '../../../src/domain/compute/compute.ts';
import {
  CONNECTION_PROFILES,
  type ConnectionProfile,
  tableProfile,
} from '../../../src/domain/connections/connection-profile.ts';
import type { ConnectionHistory } from '../../../src/domain/connections/connections.ts';
import { type Decision, decide } from '../../../src/domain/decide/decide.ts';
import { describeStep } from '../../../src/domain/decide/trace.ts';
import type { HeadroomPolicy } from '../../../src/domain/policy/kinds/headroom.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import { aCompute, aHeadroom, aHold, aLimits, aSchedule, at, compiled, countsUntil } from '../../support/builders.ts';
import { traceOf } from './trace-text.ts';

const NOON = at('2026-03-02T12:00:00Z');
const MINUTE_MS = 60_000;
const BASELINE: ComputeSettings = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300 };
const size = (minCu: number, maxCu = minCu): Size => ({ minCu, maxCu });
const wanting = (wanted: Size): Policy => aSchedule({ name: 'schedule', windows: [], otherwise: { size: wanted } });
/** So many for the whole window of half an hour. */
const steady = (connections: number) => countsUntil(NOON, ...Array.from({ length: 31 }, () => connections));

interface Given {
  policies: Policy[];
  has?: Partial<Compute>;
  counts?: ConnectionHistory;
  baseline?: ComputeSettings | null;
  profile?: ConnectionProfile;
}

function decideWith({ policies, has, counts = steady(0), baseline = BASELINE, profile }: Given): Decision {
  return decide({
    policies: compiled(...policies),
    compute: aCompute({ minCu: 1, maxCu: 2, ...has }),
    baseline: baseline ?? undefined,
    connections: counts,
    profile,
    instantMs: NOON,
  });
}

const sizeTrace = (given: Given) => traceOf(decideWith(given), 'size');

describe('headroom', () => {
  // max_connections of the seed: 450 at 1 CU, 901 at 2, 1351 at 3, 1802 at 4, 3604 at 8, 4000 from 9 on; 80 % may be used.
  it.each<[string, number, Partial<HeadroomPolicy>, string]>([
    ['is met by what is wanted', 720, {}, 'headroom_met headroom → 1-2 CU'],
    ['is not met by one connection less', 721, {}, 'headroom headroom → 1-3 CU'],
    ['raises to the smallest maximum that covers the need', 1100, {}, 'headroom headroom → 1-4 CU'],
    ['raises over several sizes at once', 2883, {}, 'headroom headroom → 1-8 CU'],
    ['counts a share that is no round number exactly', 630, { targetShare: 0.7 }, 'headroom_met headroom → 1-2 CU'],
  ])('%s', (_what, connections, policy, expected) => {
    const trace = sizeTrace({ policies: [aHeadroom(policy)], counts: steady(connections) });
    expect(trace).toEqual(['no_value', expected]);
  });

  it('rounds the need up, without what adding halves leaves', () => {
    // 630 / 0.7 is 900.0000000000001 in floating point; 901 − 900 leaves one.
    const [step] = decideWith({ policies: [aHeadroom({ targetShare: 0.7 })], counts: steady(630) }).trace.filter(
      ({ connections }) => connections,
    );
    expect(step?.connections).toEqual({ peak: 630, need: 900, usable: 901 });
  });

  it('starts from what schedules and limits want, and leaves the minimum as decided', () => {
    const policies = [wanting(size(0.25, 1)), aLimits({ size: { minCu: 0.5 } }), aHeadroom()];
    expect(sizeTrace({ policies, counts: steady(500) })).toEqual([
      'otherwise schedule → 0.25-1 CU',
      'limited limits → 0.5-1 CU',
      'headroom headroom → 0.5-2 CU',
    ]);
    expect(sizeTrace({ policies: [wanting(size(4)), aHeadroom()], counts: steady(500) })).toEqual([
      'otherwise schedule → 4 CU',
      'headroom_met headroom',
    ]);
  });

  it('reaches up to its own max_size, and reports what is left', () => {
    const policies = [wanting(size(1)), aHeadroom({ maxCu: 4 })];
    expect(sizeTrace({ policies, counts: steady(3000) })).toEqual([
      'otherwise schedule → 1 CU',
      'headroom headroom → 1-4 CU',
      'headroom_unmet headroom',
    ]);
    const large = [wanting(size(1, 8)), aHeadroom({ maxCu: 4 })];
    expect(sizeTrace({ policies: large, counts: steady(3000) })).toEqual([
      'otherwise schedule → 1-8 CU',
      'headroom_unmet headroom',
    ]);
    expect(sizeTrace({ policies: [aHeadroom({ maxCu: 1 })], counts: steady(3000) })).toEqual([
      'no_value',
      'baseline headroom → 1-2 CU',
      'headroom_unmet headroom',
    ]);
  });

  it('does not grow beyond the size from which the table gives no more', () => {
    const policies = [wanting(size(4)), aHeadroom({ maxCu: 16 })];
    expect(sizeTrace({ policies, counts: steady(9000) })).toEqual([
      'otherwise schedule → 4 CU',
      'headroom headroom → 4-9 CU',
      'headroom_unmet headroom',
    ]);
  });

  it('keeps to the span that the platform allows, unless it may raise the minimum', () => {
    const policies = (mayRaiseMin: boolean) => [wanting(size(0.5, 2)), aHeadroom({ maxCu: 16, mayRaiseMin })];
    const counts = steady(3000);
    const has = { minCu: 0.5, maxCu: 2 };
    expect(decideWith({ policies: policies(false), has, counts }).desired.size).toEqual(size(0.5, 8));
    expect(decideWith({ policies: policies(true), has, counts }).desired.size).toEqual(size(1, 9));
    expect(sizeTrace({ policies: policies(false), has, counts: steady(3000) })[1]).toBe('headroom headroom → 0.5-8 CU');
  });

  it('raises the minimum where max_connections follows it, the maximum first', () => {
    const profile = CONNECTION_PROFILES['vendor-2026'];
    const raise = (mayRaiseMin: boolean, connections: number) =>
      decideWith({
        policies: [wanting(size(0.25, 2)), aHeadroom({ mayRaiseMin })],
        has: { minCu: 0.25, maxCu: 2 },
        counts: steady(connections),
        profile,
      });
    // 832 usable at 2 CU; at 3 CU 832 with a minimum of 0.25, 1251 with 0.5.
    expect(raise(true, 665).desired.size).toEqual(size(0.25, 2));
    expect(raise(true, 666).desired.size).toEqual(size(0.5, 3));
    expect(raise(false, 666).desired.size).toEqual(size(0.25, 2));
    expect(traceOf(raise(false, 666), 'size').at(-1)).toBe('headroom_unmet headroom');
  });

  it('is met by exactly what is needed', () => {
    const policies = [wanting(size(1)), aHeadroom({ targetShare: 1 })];
    expect(sizeTrace({ policies, counts: steady(450) }).at(-1)).toBe('headroom_met headroom');
    expect(sizeTrace({ policies, counts: steady(451) }).at(-1)).toBe('headroom headroom → 1-2 CU');
  });

  it('never lowers the maximum to raise the minimum', () => {
    const policies = [wanting(size(0.25, 4)), aHeadroom({ mayRaiseMin: true })];
    const decision = decideWith({ policies, counts: steady(800), profile: CONNECTION_PROFILES['vendor-2026'] });
    // 832 usable with a minimum of 0.25, 1671 with 0.5; 0.5-3 CU would do.
    expect(decision.desired.size).toEqual(size(0.5, 4));
  });

  it('raises a lowered minimum again where its connections are needed, although the wanted maximum is above max_size', () => {
    const policies = [wanting(size(0.25, 5)), aHeadroom({ maxCu: 0.5 })];
    const has = { minCu: 1, maxCu: 3 };
    const decision = decideWith({ policies, has, counts: steady(800), profile: CONNECTION_PROFILES['vendor-2026'] });
    // 1000 needed, of 1252 usable now; 832 with a minimum of 0.25, 1671 with 0.5.
    expect(decision.desired.size).toEqual(size(0.5, 5));
  });

  it('reaches 16 CU as a range, and above it a fixed size', () => {
    const byCu = new Map([
      [15, 100],
      [16, 200],
      [18, 300],
    ]);
    const profile = tableProfile({ name: 'large', reserved: 0, byCu });
    const policies = [wanting(size(10, 15)), aHeadroom({ mayRaiseMin: true, maxCu: 56 })];
    const raised = (connections: number) => sizeTrace({ policies, counts: steady(connections), profile }).slice(1);
    expect(raised(160)).toEqual(['headroom headroom → 10-16 CU']);
    expect(raised(161)).toEqual(['headroom headroom → 18 CU']);
  });

  it('covers the largest need of several policies', () => {
    const more = aHeadroom({ name: 'more', targetShare: 0.4 });
    for (const policies of [
      [wanting(size(1)), aHeadroom(), more],
      [wanting(size(1)), more, aHeadroom()],
    ]) {
      expect(decideWith({ policies, counts: steady(500) }).desired.size).toEqual(size(1, 3));
    }
    const later = [wanting(size(1)), aHeadroom(), more];
    expect(sizeTrace({ policies: later, counts: steady(500) }).slice(1)).toEqual([
      'headroom more → 1-3 CU',
      'headroom_met headroom',
    ]);
  });

  it('goes beyond a limit and says so, but not beyond a hard one', () => {
    const given = (hard: boolean) => ({
      policies: [wanting(size(1)), aLimits({ size: { maxCu: 2 }, hard }), aHeadroom()],
      counts: steady(1000),
    });
    const beyond = [
      'otherwise schedule → 1 CU',
      'within_limits limits',
      'headroom headroom → 1-3 CU',
      'headroom_over_limit headroom',
    ];
    expect(sizeTrace(given(false))).toEqual(beyond);
    expect(sizeTrace(given(true))).toEqual([...beyond, 'hard_limit limits → 1-2 CU', 'headroom_unmet headroom']);
    const { size: _none, ...timed } = aLimits({ suspendTimeout: { maxSeconds: 600 } });
    const sized = [aLimits({ size: { maxCu: 3 } }), aLimits({ size: { minCu: 1 } })];
    const within = [wanting(size(1)), ...sized, timed, aHeadroom()];
    expect(sizeTrace({ policies: within, counts: steady(1000) })).not.toContain('headroom_over_limit headroom');
  });

  it('reports what a hold leaves uncovered', () => {
    const decision = decide({
      policies: compiled(aHeadroom()),
      compute: aCompute(),
      baseline: BASELINE,
      connections: steady(1000),
      holds: [aHold({ size: size(1) })],
      instantMs: NOON,
    });
    expect(traceOf(decision, 'size').slice(-2)).toEqual(['hold h1 → 1 CU', 'headroom_unmet headroom']);
  });

  it('with act: advise only reports, whether a size would help or not', () => {
    const advise = (connections: number, maxCu = 8) =>
      decideWith({
        policies: [wanting(size(1)), aHeadroom({ act: 'advise', criticalShare: 0.9, maxCu })],
        counts: steady(connections),
      });
    expect(traceOf(advise(300), 'size').at(-1)).toBe('headroom_met headroom');
    expect(traceOf(advise(1000), 'size').at(-1)).toBe('headroom_advised headroom');
    expect(traceOf(advise(1000, 1), 'size').at(-1)).toBe('headroom_advised headroom');
    expect(advise(1000)).toMatchObject({ urgent: false, desired: { size: size(1) } });
    const unknown = decideWith({ policies: [wanting(size(0.25)), aHeadroom({ act: 'advise' })], counts: new Map() });
    expect(unknown.desired.size).toEqual(size(0.25));
  });

  it('gives no reason where connections are not evaluated, except that the baseline is missing', () => {
    const policies = compiled(aHeadroom());
    const input = { policies, compute: aCompute(), instantMs: NOON };
    expect(traceOf(decide({ ...input, baseline: BASELINE }), 'size')).toEqual(['no_value']);
    expect(sizeTrace({ policies: [aHeadroom()], baseline: null })).toEqual(['no_value', 'baseline_unknown headroom']);
  });

  it('of a policy that observes writes nothing', () => {
    const policies = [wanting(size(1)), aHeadroom({ mode: 'observe', criticalShare: 0.5 })];
    expect(decideWith({ policies, counts: steady(1000) })).toMatchObject({
      desired: { size: size(1, 3) },
      enforced: { size: size(1) },
      urgent: false,
    });
  });
});

describe('going back', () => {
  const lowering = [wanting(size(0.25, 1)), aHeadroom()];

  it('waits until the whole window agreed', () => {
    const few = Array.from({ length: 25 }, () => 10);
    expect(sizeTrace({ policies: lowering, counts: countsUntil(NOON, ...few) }).at(-1)).toBe(
      'stabilising headroom → 1-2 CU',
    );
    expect(sizeTrace({ policies: lowering, counts: countsUntil(NOON, 10, ...few) }).at(-1)).toBe(
      'headroom_met headroom',
    );
    const larger = { policies: [wanting(size(1, 4)), aHeadroom()], counts: countsUntil(NOON, ...few) };
    expect(sizeTrace(larger).at(-1)).toBe('headroom_met headroom');
    const peakAt = (minutesAgo: number) =>
      decideWith({
        policies: lowering,
        counts: new Map([
          [
            'counts',
            [...(steady(10).get('counts') ?? [])].map((sample) => ({
              ...sample,
              connections: sample.atMs === NOON - minutesAgo * MINUTE_MS ? 400 : 10,
            })),
          ],
        ]),
      });
    expect(peakAt(30).desired.size).toEqual(size(0.25, 2));
    const longAgo = countsUntil(NOON, 400, ...Array.from({ length: 31 }, () => 10));
    expect(decideWith({ policies: lowering, counts: longAgo }).desired.size).toEqual(size(0.25, 1));
  });

  it('goes no further than schedules and limits say', () => {
    expect(decideWith({ policies: [wanting(size(1, 2)), aHeadroom()], has: { maxCu: 8 } }).desired.size).toEqual(
      size(1, 2),
    );
    expect(decideWith({ policies: [aHeadroom()], has: { maxCu: 8 } }).desired.size).toEqual(size(1, 2));
  });
});

describe('headroom keeps what the compute has and its connections need', () => {
  // As the platform is now: 4 CU and 1671 usable connections with a minimum of 0.5, 8 CU and 3350 with one of 1.
  const profile = CONNECTION_PROFILES['vendor-2026'];
  const night = wanting(size(0.5, 8));
  const wanted = (given: Given) => decideWith({ profile, ...given }).desired.size;

  it('never lowers the minimum below what they need, though it may raise none', () => {
    const has = { minCu: 1, maxCu: 8 };
    const policies = [night, aHeadroom({ targetShare: 0.7 })];
    expect(wanted({ policies, has, counts: steady(1687) })).toEqual(size(1, 8));
    // 1169 / 0.7 is 1670, 1170 / 0.7 is 1672.
    expect(wanted({ policies, has, counts: steady(1169) })).toEqual(size(0.5, 8));
    expect(wanted({ policies, has, counts: steady(1170) })).toEqual(size(1, 8));
    expect(wanted({ policies, has: { minCu: 4, maxCu: 8 }, counts: steady(1687) })).toEqual(size(1, 8));
  });

  it('keeps all that it has where even that is too little', () => {
    const policies = [night, aHeadroom({ targetShare: 0.4 })];
    expect(wanted({ policies, has: { minCu: 1, maxCu: 8 }, counts: steady(1687) })).toEqual(size(1, 8));
  });

  it('keeps a maximum above its max_size, and raises to none', () => {
    const policies = [wanting(size(1, 2)), aHeadroom({ maxCu: 4 })];
    expect(wanted({ policies, has: { minCu: 1, maxCu: 6 }, counts: steady(1600) })).toEqual(size(1, 5));
    expect(wanted({ policies, has: { minCu: 1, maxCu: 4 }, counts: steady(1600) })).toEqual(size(1, 4));
  });

  it('gives them up for a hard limit', () => {
    const policies = [night, aHeadroom(), aLimits({ size: { maxCu: 2 }, hard: true })];
    expect(wanted({ policies, has: { minCu: 1, maxCu: 8 }, counts: steady(1687) })).toEqual(size(1, 2));
  });

  it('says what the minimum allows where a higher one would give more connections', () => {
    const unmet = (given: Partial<Given>) =>
      decideWith({ profile, policies: [night, aHeadroom()], has: { minCu: 0.5, maxCu: 8 }, ...given })
        .trace.filter(({ code }) => code === 'headroom_unmet')
        .map(describeStep);
    expect(unmet({ counts: steady(1687) })).toEqual([
      'headroom headroom (peak 1687 connections, 2109 needed, 1671 usable; the minimum of 0.5 CU allows 4 CU: write may_raise_min: true)',
    ]);
    const narrow = [wanting(size(0.5, 2)), aHeadroom({ maxCu: 16 })];
    expect(unmet({ policies: narrow, counts: steady(3100), profile: CONNECTION_PROFILES.specification })).toEqual([
      'headroom headroom (peak 3100 connections, 3875 needed, 3604 usable; the minimum of 0.5 CU allows 8 CU: write may_raise_min: true)',
    ]);
    const raising = [night, aHeadroom({ mayRaiseMin: true })];
    expect(unmet({ policies: raising, counts: steady(9000) })).toEqual([
      'headroom headroom (peak 9000 connections, 11250 needed, 3350 usable)',
    ]);
    const held = [night, aHeadroom(), aLimits({ size: { maxCu: 2 }, hard: true })];
    expect(unmet({ policies: held, counts: steady(1687) })).toEqual([
      'headroom headroom (peak 1687 connections, 2109 needed, 832 usable)',
    ]);
  });
});

describe('while nothing is known of the connections', () => {
  const stale = countsUntil(NOON - 5 * MINUTE_MS - 1, 10);
  const policies = [wanting(size(0.25, 1)), aHeadroom()];

  it.each([
    ['missing', new Map() as ConnectionHistory],
    ['stale', stale],
    ['of another source', new Map([['other', steady(1).get('counts') ?? []]])],
    ['of the future', countsUntil(NOON + MINUTE_MS, 10)],
  ])('nothing lowers an active compute: counts are %s', (_what, counts) => {
    expect(sizeTrace({ policies, counts })).toEqual([
      'otherwise schedule → 0.25-1 CU',
      'connections_unknown headroom → 1-2 CU',
    ]);
  });

  it('raises go on, and a lowering that leaves max_connections; it is reported all the same', () => {
    expect(sizeTrace({ policies: [wanting(size(4)), aHeadroom()], counts: stale })).toEqual([
      'otherwise schedule → 4 CU',
      'connections_unknown headroom',
    ]);
    const less = decideWith({
      policies: [wanting(size(9)), aHeadroom()],
      counts: stale,
      has: { minCu: 16, maxCu: 16 },
    });
    expect(less.desired.size).toEqual(size(9));
    expect(sizeTrace({ policies: [aHeadroom()], counts: stale })).toEqual(['no_value', 'connections_unknown headroom']);
  });

  it('timeouts go on, and hard limits', () => {
    const timed = aSchedule({ windows: [], otherwise: { size: size(1), suspendTimeoutSeconds: 60 } });
    expect(decideWith({ policies: [timed, aHeadroom()], counts: stale }).desired).toEqual({
      size: size(1, 2),
      suspendTimeoutSeconds: 60,
    });
    const hard = [...policies, aLimits({ size: { maxCu: 1 }, hard: true })];
    expect(decideWith({ policies: hard, counts: stale }).desired.size).toEqual(size(1));
  });

  it('a compute that sleeps has no connections, whatever was counted', () => {
    const asleep = decideWith({ policies, counts: new Map(), has: { state: 'idle' } });
    expect(traceOf(asleep, 'size')).toEqual(['otherwise schedule → 0.25-1 CU', 'headroom_met headroom']);
  });
});

describe('critical', () => {
  const critical = (connections: number, given: Partial<Given> = {}) =>
    decideWith({
      policies: [wanting(size(1, 2)), aHeadroom({ criticalShare: 0.9 })],
      counts: steady(connections),
      ...given,
    });

  it('is urgent from its share of what is usable now on', () => {
    // 90 % of 901 is 810.9.
    expect(critical(810).urgent).toBe(false);
    expect(critical(811).urgent).toBe(true);
    expect(decideWith({ policies: [wanting(size(1, 2)), aHeadroom()], counts: steady(900) }).urgent).toBe(false);
  });

  it('does not count the connections that max_connections keeps', () => {
    const policies = [wanting(size(1, 4)), aHeadroom({ criticalShare: 0.9 })];
    const urgent = (connections: number) =>
      critical(connections, { policies, profile: CONNECTION_PROFILES['vendor-2026'] }).urgent;
    // 90 % of 839 − 7 is 748.8.
    expect([748, 749].map(urgent)).toEqual([false, true]);
  });

  it('believes what the compute reports before the table', () => {
    const counts = new Map([['counts', [{ atMs: NOON, connections: 800, maxConnections: 888 }]]]);
    expect(critical(0, { counts }).urgent).toBe(true);
  });

  it('looks at what is, not at what was', () => {
    expect(critical(0, { counts: countsUntil(NOON, 900, 10) }).urgent).toBe(false);
  });

  it('hurries a raise that a schedule wants already, but none that gives no connections', () => {
    const wanted = (wish: Size) => critical(900, { policies: [wanting(wish), aHeadroom({ criticalShare: 0.9 })] });
    expect(wanted(size(1, 4)).urgent).toBe(true);
    expect(critical(900, { policies: [wanting(size(2)), aHeadroom({ criticalShare: 0.9, maxCu: 2 })] }).urgent).toBe(
      false,
    );
  });
});
