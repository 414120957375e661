import { expect, it } from 'vitest';
import { branchCost, costDetail, keepDetail, readDetail } from '../../src/app/usage/cost-detail.ts';
import { costSummary } from '../../src/app/usage/cost-summary.ts';
import { type MonthCosts, monthCosts } from '../../src/app/usage/month-costs.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { mergeUsage, noUsage } from '../../src/domain/usage/stored.ts';
import { NO_COSTS } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { DAY_MS, HOUR_MS } from './support.ts';

const ORGANIZATION = { account: 'main', organization: 'org-acme' };
const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
const NOW_MS = FROM_MS + 14 * DAY_MS + 8 * HOUR_MS;
const COSTS = { ...NO_COSTS, prices: { free: 0, launch: 2, scale: 2 }, plans: new Map() };
const PROJECTS = Array.from({ length: 60 }, (_, index) => `p-${index}`);

/** Every project uses one CU-hour more on each day than the project before it; p-0 nothing. */
async function storedUsage() {
  const store = memoryUsageStore();
  const stored = usageAccount(store, ORGANIZATION);
  const metadata = { hourMs: 0, dayMs: 0, months: [], gone: [], quantities: [], trials: [] };
  await stored.putMetadata({ ...metadata, plans: [[0, 'launch']] });
  const usageOf = (projectId: string, perDay: number) => {
    const days = Array.from({ length: 40 }, (_, day) => ({
      ...{ startMs: FROM_MS + (day - 26) * DAY_MS, seconds: DAY_MS / 1000, cuSeconds: perDay * 3600 },
    }));
    const hours = Array.from({ length: 4 }, (_, hour) => ({
      ...{ startMs: FROM_MS + 14 * DAY_MS + hour * HOUR_MS, seconds: 3600, cuSeconds: (perDay * 3600) / 24 },
    }));
    const buckets = [...days, ...hours];
    return ['branch', null].map(
      (name) => mergeUsage(noUsage({ projectId, branchId: name && `br-${projectId}` }), { buckets }).usage,
    );
  };
  await stored.put(PROJECTS.flatMap((projectId, index) => usageOf(projectId, index)));
  const costs = await monthCosts({
    ...{ ...ORGANIZATION, stored, nowMs: NOW_MS, costs: COSTS, ownerOf: ({ projectId }) => `team-${projectId}` },
  });
  if (!costs) throw new Error('nothing is known');
  return { store, costs };
}

const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);
const detailOf = (costs: MonthCosts) => {
  const detail = costDetail([costs], (projectId) => `shop ${projectId}`);
  if (!detail) throw new Error('nothing is known');
  return detail;
};

it('has the days of owners from four weeks ago to yesterday, small owners together, and the sums of the summary', async () => {
  const { costs } = await storedUsage();
  const detail = detailOf(costs);
  expect(detail.first_day).toBe('2026-10-18');
  expect(detail.owners).toHaveLength(51);
  expect(detail.owners[0]).toEqual({ owner: 'team-p-59', cu_hours: Array(28).fill(59), usd: Array(28).fill(118) });
  // Those of p-1 to p-9.
  expect(detail.owners.at(-1)).toMatchObject({ owner: 'others', cu_hours: Array(28).fill(45) });
  expect(detail.projects[0]).toMatchObject({ project_id: 'p-59', project_name: 'shop p-59', owner: 'team-p-59' });
  expect(detail.projects_left_out).toBe(0);
  const summary = costSummary([costs], NOW_MS);
  expect(total(detail.projects.map(({ usd }) => usd ?? Number.NaN))).toBeCloseTo(summary?.total.usd ?? 0, 0);
  const ofMonth = detail.owners.flatMap(({ usd }) => usd?.slice(14) ?? []);
  // Without today.
  expect(total(ofMonth)).toBe(14 * 2 * ((59 * 60) / 2));
});

it('is in no dollars where a price is not known, and is kept until nothing is known', async () => {
  const { costs } = await storedUsage();
  const unpriced = { ...costs, days: new Map([['a', new Map([[FROM_MS, aLine(3600)]])]]) };
  expect(detailOf(unpriced).owners).toMatchObject([{ owner: 'a', usd: null }]);
  const store = memoryDocumentStore();
  expect(await readDetail(store)).toBeUndefined();
  await keepDetail(store, detailOf(unpriced));
  expect(await readDetail(store)).toEqual(detailOf(unpriced));
  await keepDetail(store, costDetail([], String));
  expect(await readDetail(store)).toBeUndefined();
});

function aLine(cuSeconds: number) {
  return { name: '', cuSeconds, usd: undefined, unknownHours: 0 };
}

it('says of a branch what this month has cost, today as far as known', async () => {
  const { store } = await storedUsage();
  const of = { ...{ ...ORGANIZATION, store, costs: COSTS, nowMs: NOW_MS } };
  const cost = await branchCost({ ...of, unit: { projectId: 'p-24', branchId: 'br-p-24' } });
  expect(cost).toEqual({
    ...{ first_day: '2026-11-01', known_until: '2026-11-15T04:00:00Z', cu_hours: 340, usd: 680, unknown_hours: 2 },
    days: { cu_hours: [...Array(14).fill(24), 4], usd: [...Array(14).fill(48), 8] },
  });
  expect(await branchCost({ ...of, unit: { projectId: 'p-none', branchId: 'br-none' } })).toBeNull();
  expect(await branchCost({ ...of, store: memoryUsageStore(), unit: { projectId: 'p-1', branchId: null } })).toBeNull();
});
