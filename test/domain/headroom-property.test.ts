/** What headroom promises, whatever is counted. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Recording, replay } from '../../src/domain/backtest/replay.ts';
import type { Size } from '../../src/domain/compute/compute.ts';
import { CONNECTION_PROFILES } from '../../src/domain/connections/connection-profile.ts';
import type { ConnectionHistory } from '../../src/domain/connections/connections.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import type { HeadroomPolicy } from '../../src/domain/policy/kinds/headroom.ts';
import { aCompute, aHeadroom, aLimits, aSchedule, at, compiled, countsUntil } from '../support/builders.ts';
import { computes, profiles, sizes } from './arbitraries.ts';

/** Set EBB_PROPERTY_RUNS for a long run. */
const RUNS = Number(process.env.EBB_PROPERTY_RUNS ?? 8) * 5;
const NOON = at('2026-03-02T12:00:00Z');
const MINUTE_MS = 60_000;
const AT_ONCE = { lower: { when: 'any', atDeadline: 'apply' }, cooldownMs: 0 } as const;

const headrooms = fc.record({
  targetShare: fc.integer({ min: 20, max: 100 }).map((percent) => percent / 100),
  maxCu: fc.constantFrom(0.5, 2, 8, 16),
  mayRaiseMin: fc.boolean(),
});

describe('the size that headroom wants', () => {
  it('gives no fewer connections where more are needed', () => {
    const counts = fc.array(fc.tuple(fc.nat(5000), fc.nat(3000)), { minLength: 1, maxLength: 31 });
    const given = fc.tuple(headrooms, computes, sizes, sizes, profiles, counts);
    fc.assert(
      fc.property(given, ([policy, compute, wanted, limit, profile, pairs]) => {
        const policies = compiled(
          aSchedule({ name: 'schedule', windows: [], otherwise: { size: wanted } }),
          aLimits({ size: { maxCu: limit.maxCu } }),
          aHeadroom(policy),
        );
        const given = (connections: ConnectionHistory) => {
          const input = { policies, compute, baseline: compute, instantMs: NOON, connections, profile };
          const { size } = decide(input).desired;
          return (profile ?? CONNECTION_PROFILES.specification).maxConnections(size ?? compute);
        };
        const few = countsUntil(NOON, ...pairs.map(([count]) => count));
        const many = countsUntil(NOON, ...pairs.map(([count, more]) => count + more));
        expect(given(many)).toBeGreaterThanOrEqual(given(few));
      }),
      { numRuns: 4 * RUNS },
    );
  });
});

describe('a decision where connections are counted', () => {
  it('gives at least what they and their headroom need, as far as what the compute has covers it', () => {
    const counts = fc.array(fc.nat(5000), { minLength: 31, maxLength: 31 });
    const given = fc.tuple(
      fc.array(headrooms, { minLength: 1, maxLength: 3 }),
      computes,
      sizes,
      sizes,
      profiles,
      counts,
    );
    fc.assert(
      fc.property(given, ([needs, compute, wanted, limit, profile = CONNECTION_PROFILES.specification, counted]) => {
        const policies = compiled(
          aSchedule({ name: 'schedule', windows: [], otherwise: { size: wanted } }),
          aLimits({ size: { maxCu: limit.maxCu } }),
          ...needs.map((need, index) => aHeadroom({ name: `headroom-${index}`, ...need })),
        );
        const connections = countsUntil(NOON, ...counted);
        const decision = decide({ policies, compute, baseline: compute, instantMs: NOON, connections, profile });
        const usable = (size: Size) => profile.maxConnections(size) - profile.reserved;
        const peak = compute.state === 'idle' ? 0 : Math.max(...counted);
        const need = Math.max(...needs.map(({ targetShare }) => Math.ceil(peak / targetShare - 1e-9)));
        expect(usable(decision.desired.size ?? compute)).toBeGreaterThanOrEqual(Math.min(need, usable(compute)));
      }),
      { numRuns: 4 * RUNS },
    );
  });
});

describe('a day of counts', () => {
  const recordingOf = (counts: readonly number[]): Recording => {
    const baseline = { minCu: 0.25, maxCu: 0.25, suspendTimeoutSeconds: -1 };
    return {
      ...{ compute: aCompute(baseline), baseline, profile: CONNECTION_PROFILES.specification },
      counts: counts.map((connections, minute) => ({ atMs: NOON + minute * MINUTE_MS, connections })),
    };
  };
  const lived = (counts: readonly number[], policy: Partial<HeadroomPolicy>) =>
    replay(recordingOf(counts), { policies: compiled(aHeadroom({ disruption: AT_ONCE, ...policy })) });
  const days = fc.array(fc.oneof(fc.nat(100), fc.nat(3000)), { minLength: 1, maxLength: 240 });

  it('never leaves less than is needed for what was seen, unless the largest size gives no more', () => {
    fc.assert(
      fc.property(days, headrooms, (counts, policy) => {
        const most = CONNECTION_PROFILES.specification.maxConnections({
          minCu: 0.25,
          maxCu: Math.min(policy.maxCu, 8),
        });
        let before = 112;
        for (const { demand = 0, usable } of lived(counts, policy).stretches) {
          const need = Math.ceil(Math.min(demand, before) / policy.targetShare - 1e-9);
          expect(usable).toBeGreaterThanOrEqual(Math.min(need, most));
          before = usable;
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('goes back only after a whole window without a raise, however the counts jump', () => {
    const windows = fc.constantFrom(5, 30, 60);
    fc.assert(
      fc.property(days, headrooms, windows, (counts, policy, minutes) => {
        const windowMs = minutes * MINUTE_MS;
        const { changes } = lived(counts, { ...policy, scaleDownAfterMs: windowMs });
        for (const [index, change] of changes.entries()) {
          const raised = changes.slice(0, index).findLast(({ raises }) => raises);
          if (!change.raises && raised) expect(change.atMs - raised.atMs).toBeGreaterThan(windowMs);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('stays where it is while noise around a threshold comes back to its top within the window', () => {
    // 89 connections need 112 at 80 %, 90 need 113: the threshold between 0.25 and 0.5 CU.
    const noise = fc.tuple(fc.integer({ min: 0, max: 89 }), fc.integer({ min: 90, max: 112 })).chain(([low, high]) => {
      const quiet = fc.array(fc.integer({ min: low, max: high }), { maxLength: 28 });
      return fc.array(quiet, { minLength: 1, maxLength: 12 }).map((all) => all.flatMap((some) => [high, ...some]));
    });
    fc.assert(
      fc.property(noise, (counts) => {
        const { changes } = lived(counts, { targetShare: 0.8 });
        expect(changes.map(({ after }) => after.maxCu)).toEqual([0.5]);
      }),
      { numRuns: RUNS },
    );
  });
});
