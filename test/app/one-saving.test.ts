/** Findings, plan and diff say the same of the same policies and the same past. */
import { expect, it } from 'vitest';
import { policyFiles } from '../../src/app/recommend/policies.ts';
import { monthChange } from '../../src/cli/forecast/month.ts';
import { foresee } from '../../src/cli/forecast/outlook.ts';
import type { UsageHistories } from '../../src/cli/forecast/usage-history.ts';
import { historyFrom } from '../../src/domain/awake/intervals.ts';
import { usageProfile } from '../../src/domain/forecast/expected.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { RecommendFacts } from '../../src/domain/recommend/finding.ts';
import { findingsOf } from '../../src/domain/recommend/recommend.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { aSchedule, aTrial, compiled } from '../support/builders.ts';
import { DAY } from '../support/demand.ts';
import { drawRealFleet, shownFacts } from '../support/real-use-trial.ts';

const PRICE = 0.2;
const PRICING = { accounts: [{ name: 'default', plan: 'scale' }], prices: { free: 0, launch: 0.1, scale: PRICE } };

/** Databases of both kinds that have these timeouts, with four weeks of their log. */
function fleetOf(seed: number): RecommendFacts[] {
  return (['serverless', 'provisioned'] as const).flatMap((kind) =>
    drawRealFleet(seed, kind).map((database, index) => {
      const timeoutSeconds = [300, 900, 3600, -1][index % 4] ?? 300;
      const facts = shownFacts(database, timeoutSeconds);
      const name = `${kind}-${index}`;
      const compute = { ...facts.compute, computeId: `ep-${name}`, projectId: name, branchId: name, projectName: name };
      return { ...facts, compute, price: PRICE, history: historyFrom(facts.history, facts.history.toMs - 28 * DAY) };
    }),
  );
}

it.each([501, 502])('the sum of findings is what a plan of their policies says (seed %i)', (seed) => {
  const fleet = fleetOf(seed);
  const findings = fleet.flatMap((facts) => findingsOf(facts)).filter(({ policy }) => policy !== undefined);
  const computes = fleet.map(({ compute }) => compute);
  const parsed = parsePolicyFiles(policyFiles(findings, computes));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  const usages: UsageHistories = new Map(
    fleet.flatMap(({ compute, history, hours = [] }) => {
      const profile = usageProfile(hours);
      return profile ? [[compute.computeId, { profile, hours, history }] as const] : [];
    }),
  );
  const toMs = fleet[0]?.history.toMs ?? 0;
  const input = { fromMs: toMs, toMs: toMs + 7 * DAY, subjects: computes.map((compute) => ({ compute })), usages };
  const pricing = PRICING as unknown as Parameters<typeof foresee>[0]['pricing'];
  const before = foresee({ ...input, policies: compiled(), pricing });
  const after = foresee({ ...input, policies: compilePolicies(parsed.set), pricing });
  const change = monthChange(before, after);
  const ratios = (['low', 'mid', 'high'] as const).map((end) => {
    const sum = findings.reduce((all, { savesCuHours }) => all + savesCuHours[end], 0);
    return (change?.cuHours[end] ?? 0) / sum;
  });
  expect(ratios[1]).toBeCloseTo(1, 2);
  // Ranges of two findings of a compute, added, may be a little wider than that of both.
  for (const ratio of ratios) expect(Math.abs(ratio - 1)).toBeLessThan(0.05);
  // Also of a second finding of a compute.
  for (const {
    savesCuHours: { low, mid, high },
  } of findings)
    expect([low, mid, high].toSorted((a, b) => a - b)).toEqual([low, mid, high]);
  const dollars = findings.reduce((all, { savesUsd }) => all + (savesUsd?.mid ?? 0), 0);
  expect((change?.usd?.saved.mid ?? 0) / dollars).toBeCloseTo(1, 2);
  // Several kinds of findings are among them.
  expect(new Set(findings.map(({ finding }) => finding)).size).toBeGreaterThanOrEqual(3);
});

it('a trial takes nothing off the saving of its policies: it is over some day', () => {
  const fleet = fleetOf(1);
  const computes = fleet.map(({ compute }) => compute);
  const toMs = fleet[0]?.history.toMs ?? 0;
  const subjects = computes.map((compute) => ({ compute }));
  const usages: UsageHistories = new Map(fleet.map(({ compute, history }) => [compute.computeId, { history }]));
  const pricing = PRICING as unknown as Parameters<typeof foresee>[0]['pricing'];
  const input = { fromMs: toMs, toMs: toMs + 7 * DAY, subjects, usages, pricing };
  const nights = aSchedule({ windows: [], otherwise: { suspendTimeoutSeconds: 60 } });
  const fromDay = Math.floor(toMs / DAY) - 14;
  const design = { seed: 'a', oneOf: 2, rotateDays: 7, fromDay, periods: 8, zone: 'UTC' } as const;
  const months = (...policies: Policy[]) =>
    monthChange(foresee({ ...input, policies: compiled() }), foresee({ ...input, policies: compiled(...policies) }));
  expect(months(nights)?.cuHours.mid).toBeGreaterThan(0);
  expect(months(nights, aTrial({ of: [nights.name], design }))).toEqual(months(nights));
});
