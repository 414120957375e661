import { describe, expect, it } from 'vitest';
import { counterfactualOf } from '../../src/app/usage/counterfactual.ts';
import type { UsageReader } from '../../src/app/usage/usage-account.ts';
import type { AwakeHistory } from '../../src/domain/awake/intervals.ts';
import { mergeUsage, noUsage } from '../../src/domain/usage/stored.ts';
import { unitName } from '../../src/domain/usage/usage.ts';
import { aCompute, aSchedule, compiled } from '../support/builders.ts';
import { DAY_MS, HOUR_MS } from './support.ts';

const UNTIL_MS = Date.parse('2026-03-16T00:00:00Z');
const HOURS = 14 * 24;

/** Every hour of the last two weeks used the same; one is not known. */
function keptOf(names: readonly string[], cuSeconds: number): UsageReader {
  const all = names.map((name) => {
    const [projectId = '', branchId = null] = name.split('/');
    const buckets = Array.from({ length: HOURS }, (_, hour) => ({
      ...{ startMs: UNTIL_MS - (HOURS - hour) * HOUR_MS, seconds: 3600, cuSeconds: hour === 7 ? null : cuSeconds },
    }));
    return mergeUsage(noUsage({ projectId, branchId }), { buckets }).usage;
  });
  return {
    metadata: async () => undefined,
    units: async () => all.map(({ projectId, branchId }) => ({ projectId, branchId })),
    read: async (units) => units.flatMap((unit) => all.find((one) => unitName(one) === unitName(unit)) ?? []),
  };
}

const shared = { untilMs: UNTIL_MS, ownerOf: () => 'team-web', priceAt: () => 0.2 };
const small = aSchedule({ windows: [], otherwise: { size: { minCu: 0.25, maxCu: 1 } } });

describe('what enforcing would have saved', () => {
  it('replays the known hours under the sizes of policies', async () => {
    const compute = aCompute({ minCu: 1, maxCu: 1, suspendTimeoutSeconds: 300 });
    const stored = keptOf([`${compute.projectId}/${compute.branchId}`], 1800);
    const [saved] = await counterfactualOf({ ...shared, stored, computes: [compute], policies: compiled(small) });
    // Awake for half of each hour at 1 CU, which is the maximum of the policy: from all of it was needed to a quarter CU was enough.
    expect(saved).toMatchObject({
      owner: 'team-web',
      computes: 1,
      used: { cuSeconds: { mid: 1800 * (HOURS - 1) } },
      saved: { cuSeconds: { low: 0, mid: 675 * (HOURS - 1), high: 1350 * (HOURS - 1) } },
    });
    const large = aCompute({ minCu: 2, maxCu: 2, suspendTimeoutSeconds: 300 });
    const [half] = await counterfactualOf({ ...shared, stored, computes: [large], policies: compiled(small) });
    // A quarter of each hour at 2 CU, and at 1 CU at most under the policy.
    expect(half?.saved.cuSeconds).toMatchObject({ low: 900 * (HOURS - 1), high: 1575 * (HOURS - 1) });
    expect(half?.saved.usd?.low).toBeCloseTo(0.25 * 0.2 * (HOURS - 1), 6);
  });

  it('is like that of other databases of a compute that never slept and whose fixed size shows no use', async () => {
    const compute = aCompute({ minCu: 1, maxCu: 1, suspendTimeoutSeconds: -1 });
    const sleeps = aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds: 300 } });
    const stored = keptOf([compute.projectId], 3600);
    const [saved] = await counterfactualOf({ ...shared, stored, computes: [compute], policies: compiled(sleeps) });
    const all = 3600 * (HOURS - 1);
    expect(saved?.saved.cuSeconds).toMatchObject({ low: 0.6 * all, high: all });
    expect(saved?.timeoutsFigure).toBe('estimate');
  });

  /** Each day clients come at nine, and the compute is suspended at eleven. */
  const days = Array.from({ length: 14 }, (_, day) => UNTIL_MS - (14 - day) * DAY_MS + 9 * HOUR_MS);
  const history: AwakeHistory = {
    ...{ fromMs: UNTIL_MS - 14 * DAY_MS, toMs: UNTIL_MS, unknown: [], startDurationsMs: [] },
    intervals: days.map((startMs) => ({ startMs, endMs: startMs + 2 * HOUR_MS, start: 'client', end: 'timeout' })),
  };
  const under = async (suspendTimeoutSeconds: number, cuSeconds = 1800) => {
    const compute = aCompute({ minCu: 1, maxCu: 1, suspendTimeoutSeconds: 3600 });
    const policy = aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds } });
    const stored = keptOf([`${compute.projectId}/${compute.branchId}`], cuSeconds);
    const asked = { ...shared, stored, computes: [compute], policies: compiled(policy) };
    const [saved] = await counterfactualOf({ ...asked, historyOf: () => history });
    return saved;
  };

  it('estimates shorter timeouts, and never more than was used', async () => {
    const saved = await under(300);
    // 55 minutes sooner each day, and perhaps pauses in the hour with clients.
    const { low = 0, mid = 0, high = 0 } = saved?.byTimeouts.cuSeconds ?? {};
    expect(low).toBeLessThan(14 * 3300);
    expect(high).toBeGreaterThan(14 * 3300);
    expect(mid / (14 * 3300)).toBeCloseTo(1.1, 0);
    expect(saved?.saved).toEqual(saved?.byTimeouts);
    const little = await under(300, 200);
    const used = little?.used.cuSeconds.mid ?? Number.NaN;
    expect(little?.saved.cuSeconds.high).toBeLessThanOrEqual(used);
    expect(little?.bySizes.cuSeconds).toEqual({ low: 0, mid: 0, high: 0 });
    expect(saved?.timeoutsFigure).toBe('estimate');
    expect(saved?.saved.usd?.low).toBeCloseTo((0.2 * (saved?.saved.cuSeconds.low ?? 0)) / 3600, 6);
  });

  it('replays longer timeouts, and says so where nothing is known', async () => {
    const saved = await under(7200);
    expect((saved?.saved.cuSeconds.mid ?? 0) / (-14 * 3600)).toBeCloseTo(1, 2);
    expect(saved?.timeoutsFigure).toBe('replayed');
    const compute = aCompute({ suspendTimeoutSeconds: 900 });
    const stored = keptOf([compute.projectId], 3600);
    const policies = compiled(aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds: 300 } }));
    const [unknown] = await counterfactualOf({ ...shared, stored, computes: [compute], policies });
    expect(unknown?.timeoutsFigure).toBe('unknown');
    expect(unknown?.byTimeouts.cuSeconds).toEqual({ low: 0, mid: 0, high: 0 });
  });

  it('leaves out computes whose usage cannot be told from that of others, and has no dollars without a price', async () => {
    const computes = ['ep-a', 'ep-b'].map((computeId) => aCompute({ computeId }));
    const stored = keptOf([`${computes[0]?.projectId}/${computes[0]?.branchId}`], 3600);
    expect(await counterfactualOf({ ...shared, stored, computes, policies: compiled(small) })).toEqual([]);
    const [unpriced] = await counterfactualOf({
      ...{ ...shared, stored, computes: computes.slice(0, 1), policies: compiled(small) },
      priceAt: () => undefined,
    });
    expect(unpriced?.saved.usd).toBeUndefined();
  });
});
