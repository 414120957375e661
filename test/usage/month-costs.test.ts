import { expect, it } from 'vitest';
import { costSummary } from '../../src/app/usage/cost-summary.ts';
import { monthCosts } from '../../src/app/usage/month-costs.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { mergeUsage, noUsage } from '../../src/domain/usage/stored.ts';
import { NO_COSTS } from '../support/builders.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { DAY_MS, HOUR_MS } from './support.ts';

const ORGANIZATION = { account: 'main', organization: 'org-acme' };
const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
/** Known up to the start of the 15th day. */
const NOW_MS = FROM_MS + 14 * DAY_MS + 2 * HOUR_MS;

/** Each project is an owner; what it used in each day before now, the latest last, in CU-hours. */
async function summaryOf(projects: Record<string, number[]>) {
  const stored = usageAccount(memoryUsageStore(), ORGANIZATION);
  const metadata = { hourMs: 0, dayMs: 0, months: [], gone: [], quantities: [], trials: [] };
  await stored.putMetadata({ ...metadata, plans: [[0, 'launch']] });
  const untilMs = FROM_MS + 14 * DAY_MS;
  await stored.put(
    Object.entries(projects).map(([projectId, days]) => {
      const buckets = days.map((used, index) => ({
        ...{ startMs: untilMs - (days.length - index) * DAY_MS, seconds: DAY_MS / 1000, cuSeconds: used * 3600 },
      }));
      return mergeUsage(noUsage({ projectId, branchId: null }), { buckets }).usage;
    }),
  );
  const costs = await monthCosts({
    ...{
      ...ORGANIZATION,
      stored,
      nowMs: NOW_MS,
      costs: { ...NO_COSTS, prices: { free: 0, launch: 1, scale: 1 }, plans: new Map() },
    },
    ownerOf: ({ projectId }) => projectId,
  });
  const summary = costSummary(costs ? [costs] : [], NOW_MS);
  if (!summary) throw new Error('nothing is known');
  return summary;
}

/** The days end on a Saturday. */
const isWeekend = (index: number, count: number) => [0, 6].includes((count - 1 - index) % 7);

it('counts days without use for what they are', async () => {
  const count = 42;
  const workdays = Array.from({ length: count }, (_, index) => Number(!isWeekend(index, count)) * 10);
  const { owners, total } = await summaryOf({ dev: workdays });
  const spent = workdays.slice(-14).reduce((sum, used) => sum + used, 0);
  expect(spent).toBe(100);
  // From Sunday the 15th to Monday the 30th eleven workdays are left.
  const { low = 0, high = 0 } = owners[0]?.projected_usd ?? {};
  expect([low <= 210, 210 <= high, high - low < 40]).toEqual([true, true, true]);
  expect(total.projected_usd).toEqual(owners[0]?.projected_usd);
});

it('projects the total from its own days: owners vary together, and a new one does not hide it', async () => {
  const wave = Array.from({ length: 56 }, (_, index) => 100 + 30 * Math.sin(index * index));
  const two = await summaryOf({ a: wave, b: wave });
  const [a, b] = two.owners.map(({ projected_usd: range }) => (range ? range.high - range.low : 0));
  const { low = 0, high = 0 } = two.total.projected_usd ?? {};
  expect((high - low) / ((a ?? 0) + (b ?? 0))).toBeCloseTo(1, 1);
  const { owners, total } = await summaryOf({ a: wave, young: [5, 5, 5] });
  const young = owners.find(({ owner }) => owner === 'young');
  expect(young).toMatchObject({ projected_usd: null, not_projected: 'too_few_days' });
  expect(total.projected_usd).not.toBeNull();
  expect(total).not.toHaveProperty('not_projected');
});
