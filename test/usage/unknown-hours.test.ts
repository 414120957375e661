import { beforeAll, describe, expect, it } from 'vitest';
import { advanceBudgets } from '../../src/app/usage/budget-rounds.ts';
import { costSummary } from '../../src/app/usage/cost-summary.ts';
import { monthCosts } from '../../src/app/usage/month-costs.ts';
import { usageAccount } from '../../src/app/usage/usage-account.ts';
import { mergeUsage, noUsage } from '../../src/domain/usage/stored.ts';
import type { CostsDocument } from '../../src/ports/cost-documents.ts';
import { aBudget, compiled, NO_COSTS } from '../support/builders.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { DAY_MS, HOUR_MS } from './support.ts';

const ORGANIZATION = { account: 'main', organization: 'org-acme' };
const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
/** Known up to the start of the 15th day. */
const UNTIL_MS = FROM_MS + 14 * DAY_MS;
const NOW_MS = UNTIL_MS + 2 * HOUR_MS;
const COSTS = { ...NO_COSTS, prices: { free: 0, launch: 1, scale: 1 }, plans: new Map() };
/** CU-hours in November: ten projects use 24 a day, ninety 1 a day. */
const [OF_AWAKE, OF_OTHERS] = [10 * 24 * 30, 90 * 30];

/** The first ten are always awake, with no known hour before the 7th of the month; the others are known throughout. */
const PROJECTS = Array.from({ length: 100 }, (_, index) => {
  const isAwake = index < 10;
  const usedAwake = (day: number) => (day < 6 ? null : 24);
  return { projectId: `p-${index}`, owner: isAwake ? 'awake' : 'others', used: isAwake ? usedAwake : () => 1 };
});

const stored = usageAccount(memoryUsageStore(), ORGANIZATION);

beforeAll(async () => {
  const metadata = { hourMs: 0, dayMs: 0, months: [], gone: [], quantities: [], trials: [] };
  await stored.putMetadata({ ...metadata, plans: [[0, 'launch']] });
  const usage = PROJECTS.flatMap(({ projectId, used }) => {
    const buckets = Array.from({ length: 56 }, (_, index) => {
      const cuHours = used(index - 42);
      const startMs = UNTIL_MS - (56 - index) * DAY_MS;
      return { startMs, seconds: DAY_MS / 1000, cuSeconds: cuHours === null ? null : cuHours * 3600 };
    });
    return [null, `br-${projectId}`].map((branchId) => mergeUsage(noUsage({ projectId, branchId }), { buckets }).usage);
  });
  await stored.put(usage);
});

describe('unknown hours of a few projects that are always awake', () => {
  let summary: CostsDocument;
  beforeAll(async () => {
    const ownerOf = ({ projectId }: { projectId: string }) =>
      PROJECTS.find((project) => project.projectId === projectId)?.owner ?? '';
    const costs = await monthCosts({ ...ORGANIZATION, stored, nowMs: NOW_MS, costs: COSTS, ownerOf });
    summary = costSummary(costs ? [costs] : [], NOW_MS) as CostsDocument;
  });

  it('are projected at what these projects use, not at what the account does', () => {
    expect(summary.total).toMatchObject({ usd: 8 * 240 + 14 * 90, unknown_hours: 10 * 6 * 24 });
    const { low = 0, mid = 0, high = 0 } = summary.total.projected_usd ?? {};
    expect(mid / (OF_AWAKE + OF_OTHERS)).toBeCloseTo(1, 2);
    // They may also have used nothing, or more.
    expect(mid - low).toBeGreaterThan(6 * 240);
    expect(high - mid).toBeGreaterThan(6 * 240);
  });

  it('are projected for the owners of their branches, who sum to the total', () => {
    const middleOf = (owner: string) => summary.owners.find((one) => one.owner === owner)?.projected_usd?.mid ?? 0;
    expect(middleOf('awake') / OF_AWAKE).toBeCloseTo(1, 2);
    expect(middleOf('others') / OF_OTHERS).toBeCloseTo(1, 2);
    expect(middleOf('unattributed')).toBe(0);
  });

  it('are projected so in budgets', async () => {
    const projects = PROJECTS.map(({ projectId }) => ({ account: 'main', projectId, projectName: projectId }));
    const { states } = await advanceBudgets({
      ...{ policies: compiled(aBudget()), costs: COSTS, before: [], releases: [], projects, computes: [] },
      ...{ organizations: [{ ...ORGANIZATION, projectIds: [], stored }], nowMs: NOW_MS },
    });
    expect(states).toMatchObject([{ unknownHours: 10 * 6 * 24 }]);
    expect((states[0]?.projected?.mid ?? 0) / (OF_AWAKE + OF_OTHERS)).toBeCloseTo(1, 2);
  });
});

describe('a spend anomaly', () => {
  /** CU-hours of yesterday, and 24 on each day before, of an owner's two projects; of some days only one's half is known. */
  async function anomalyWith({ yesterday, halfKnown }: { yesterday: number; halfKnown: (daysAgo: number) => boolean }) {
    const account = usageAccount(memoryUsageStore(), ORGANIZATION);
    const metadata = { hourMs: 0, dayMs: 0, months: [], gone: [], quantities: [], trials: [] };
    await account.putMetadata({ ...metadata, plans: [[0, 'launch']] });
    const usage = ['web', 'api'].flatMap((projectId) => {
      const buckets = Array.from({ length: 85 }, (_, index) => {
        const daysAgo = 85 - index;
        const cuSeconds = (daysAgo === 1 ? yesterday : 24) * 1800;
        const isUnknown = projectId === 'api' && halfKnown(daysAgo);
        return {
          startMs: UNTIL_MS - daysAgo * DAY_MS,
          seconds: DAY_MS / 1000,
          cuSeconds: isUnknown ? null : cuSeconds,
        };
      });
      return [null, `br-${projectId}`].map(
        (branchId) => mergeUsage(noUsage({ projectId, branchId }), { buckets }).usage,
      );
    });
    await account.put(usage);
    const ownerOf = () => 'web';
    const costs = await monthCosts({ ...ORGANIZATION, stored: account, nowMs: NOW_MS, costs: COSTS, ownerOf });
    return costs?.owners.find(({ name }) => name === 'web')?.anomaly;
  }
  const sameWeekday = (daysAgo: number) => daysAgo > 1 && daysAgo % 7 === 1;

  it('is not made by unknown hours of the days that it is compared with', async () => {
    expect(await anomalyWith({ yesterday: 24, halfKnown: sameWeekday })).toBeUndefined();
  });

  it('is not hidden by them', async () => {
    const oneInThree = (daysAgo: number) => sameWeekday(daysAgo) && daysAgo % 3 === 0;
    expect(await anomalyWith({ yesterday: 32, halfKnown: () => false })).toMatchObject({ used: 32 * 3600 });
    expect(await anomalyWith({ yesterday: 32, halfKnown: oneInThree })).toMatchObject({ used: 32 * 3600 });
  });

  it('is told of a day whose known hours alone are too many', async () => {
    const yesterday = (daysAgo: number) => daysAgo === 1;
    expect(await anomalyWith({ yesterday: 80, halfKnown: yesterday })).toMatchObject({ used: 40 * 3600 });
  });
});
