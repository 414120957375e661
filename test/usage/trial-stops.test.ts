import { describe, expect, it } from 'vitest';
import { refreshLeaderDecisions } from '../../src/app/rollout/reload.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { createStopTrials, readTrialStops } from '../../src/app/usage/trial-stops.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { updatedRecord } from '../../src/domain/evaluate/updated-record.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { armInPeriod, drawOf } from '../../src/domain/trial/assignment.ts';
import { mergeUsage, noUsage } from '../../src/domain/usage/stored.ts';
import type { Store } from '../../src/ports/store.ts';
import { aCompute, aRecord, aSchedule, aTrial, currentRules } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { DAY_MS, HOUR_MS } from './support.ts';

const PLACE = { account: 'main', organization: 'org' };
const BASELINE = { minCu: 2, maxCu: 2, suspendTimeoutSeconds: -1 };
const TRIAL = aTrial({ stopIf: { costUsd: 50 } });
const { design } = TRIAL;
const FROM_MS = design.fromDay * DAY_MS;
const COMPUTES = Array.from({ length: 16 }, (_, index) =>
  aCompute({ account: 'main', projectId: `p-${index}`, computeId: `ep-${index}`, ...BASELINE }),
);

/** A fleet that has used 48 CU-hours a day in the control group and 24 treated, for so many days of the trial. */
async function start({
  days = 28,
  unknown = false,
  plan = 'in settings' as 'in settings' | 'stored' | 'unknown',
  records = new Map<string, ComputeRecord>(),
} = {}) {
  const usage = memoryUsageStore();
  const kept = usageAccount(usage, PLACE);
  const nowMs = FROM_MS + days * DAY_MS;
  await kept.put(
    COMPUTES.map(({ projectId }) => {
      const { slot } = drawOf(design, projectId);
      const buckets = Array.from({ length: days }, (_, day) => {
        const isControl = armInPeriod(design, slot, Math.floor(day / 7)) === 'control';
        const cuSeconds = unknown ? null : (isControl ? 48 : 24) * 3600;
        return { startMs: FROM_MS + day * DAY_MS, seconds: 86_400, cuSeconds };
      });
      return mergeUsage(noUsage({ projectId, branchId: null }), { buckets }).usage;
    }),
  );
  if (plan === 'stored') {
    const times = { hourMs: nowMs, dayMs: nowMs, plans: [[FROM_MS, 'scale']] as [number, string][] };
    await kept.putMetadata({ ...times, months: [], gone: [], quantities: [], trials: [] });
  }
  const store = { ...usage, ...memoryDocumentStore(), records: async () => records } as unknown as Store;
  const rules = currentRules(aSchedule(), TRIAL);
  const { costs } = rules.current;
  if (plan === 'in settings')
    rules.current = { ...rules.current, costs: { ...costs, plans: new Map([['main', 'scale' as const]]) } };
  const said: object[] = [];
  const log = { warn: (fields: object) => void said.push(fields) };
  const organizations = [{ ...PLACE, projectIds: COMPUTES.map(({ projectId }) => projectId) }];
  const decideStops = createStopTrials();
  return {
    ...{ store, rules, said, nowMs },
    decideAt: (atMs: number) =>
      decideStops({
        ...{ store, rules: rules.current, computes: COMPUTES, organizations, nowMs: atMs },
        log: log as unknown as Parameters<typeof decideStops>[0]['log'],
      }),
  };
}

describe('a trial that costs more than stop_if', () => {
  it('ends once, for all daemons: the control group has its policies again', async () => {
    const { decideAt, store, rules, said, nowMs } = await start();
    await decideAt(nowMs);
    await decideAt(nowMs + DAY_MS);
    expect(said).toMatchObject([{ event: 'ebb.trial_stopped', policy: 'proof', cost_usd: expect.any(Number) }]);
    expect(await readTrialStops(store)).toMatchObject([{ policy: 'proof', terms: 'terms', stoppedAtMs: nowMs }]);
    const sets = createPolicySets({ stages: false, accepted: undefined });
    const control = COMPUTES.find(({ projectId }) => (4 + drawOf(design, projectId).slot) % 4 === 0);
    if (!control) throw new Error('nobody is in the control group');
    const wanted = () => {
      const { policies } = rules.current;
      const about = { policies, holds: [], manualChanges: undefined, nowMs, enforcedSinceMs: FROM_MS };
      const { trials, baseline } = updatedRecord(aRecord({ baseline: BASELINE }), control, about as never);
      const instantMs = nowMs + 6 * HOUR_MS;
      return decide({ policies, compute: control, baseline, trials, instantMs }).enforced.suspendTimeoutSeconds;
    };
    expect(wanted()).toBe(-1);
    await refreshLeaderDecisions({ rules, sets, store });
    expect(sets.needsReevaluation).toBe(true);
    expect(wanted()).toBe(300);
    // A store that came back empty takes nothing away.
    await refreshLeaderDecisions({ rules, sets, store: memoryDocumentStore() });
    expect(wanted()).toBe(300);
  });

  it('ends by the price of the plan that usage has shown, where the settings name none', async () => {
    const { decideAt, store, nowMs } = await start({ plan: 'stored' });
    await decideAt(nowMs);
    expect(await readTrialStops(store)).toMatchObject([{ policy: 'proof' }]);
  });

  it('is not asked about again on the same day', async () => {
    const { decideAt, store, nowMs } = await start();
    await decideAt(nowMs);
    await store.deleteDocuments('trial-stops', ['all']);
    await decideAt(nowMs + HOUR_MS);
    expect(await readTrialStops(store)).toBeUndefined();
  });

  it.each([
    ['no usage is known', { unknown: true }],
    ['the price is not known', { plan: 'unknown' as const }],
    ['it has hardly begun', { days: 3 }],
    [
      'its computes were assigned under other terms',
      {
        records: new Map(
          COMPUTES.map(({ computeId }) => [
            computeId,
            aRecord({
              trials: { proof: { slot: 0, flipDelayMs: 0, baseline: BASELINE, terms: 'other', sinceMs: FROM_MS } },
            }),
          ]),
        ),
      },
    ],
  ])('goes on where %s', async (_, given) => {
    const { decideAt, store, said, nowMs } = await start(given);
    await decideAt(nowMs);
    expect([await readTrialStops(store), said]).toEqual([undefined, []]);
  });
});
