import { type BillLine, billOf } from '../../domain/usage/bill.ts';
import { type BillingMonth, billingMonth, priceAt } from '../../domain/usage/month.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import type { UsageUnit } from '../../domain/usage/usage.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { UsageAccount } from './usage-account.ts';

/** This billing month of one organization, as far as it is known. */
export interface MonthCosts {
  account: string;
  organization: string;
  month: BillingMonth;
  /** The end of the last hour of which anything is known, milliseconds since the epoch. */
  knownUntilMs: number;
  /** By project and owner. */
  lines: (BillLine & { projectId: string })[];
}

const PROJECTS_AT_ONCE = 100;

/** Adds up what is kept of this month; nothing if nothing was read yet. */
export async function monthCosts(options: {
  kept: UsageAccount;
  account: string;
  organization: string;
  nowMs: number;
  costs: CostRules;
  ownerOf: (unit: UsageUnit) => string;
}): Promise<MonthCosts | undefined> {
  const { kept, account, organization, nowMs, costs, ownerOf } = options;
  const about = await kept.about();
  if (about === undefined) return undefined;
  const { plans } = about;
  const month = billingMonth(nowMs, plans, nowMs);
  const otherwise = costs.plans.get(account);
  const lines: MonthCosts['lines'] = [];
  let knownUntilMs = 0;
  for (const units of projectsOf(await kept.units())) {
    const series = (await kept.read(units)).map(seriesOf);
    for (const { buckets } of series) {
      const last = buckets.findLast(({ cuSeconds }) => cuSeconds !== null);
      if (last !== undefined) knownUntilMs = Math.max(knownUntilMs, last.startMs + last.seconds * 1000);
    }
    for (const projectId of new Set(units.map((unit) => unit.projectId))) {
      const bill = billOf({
        ...{ series: series.filter((one) => one.projectId === projectId), byProject: false, lineOf: ownerOf },
        ...{ fromMs: month.fromMs, toMs: month.untilMs },
        priceAt: (startMs) => priceAt(startMs, { plans, prices: costs.prices, otherwise }),
      });
      lines.push(...bill.lines.map((line) => ({ ...line, projectId })));
    }
  }
  return { account, organization, month, knownUntilMs, lines };
}

/** The units of some projects at a time: those of a project stay together. */
function* projectsOf(units: readonly UsageUnit[]): Generator<UsageUnit[]> {
  const byProject = new Map<string, UsageUnit[]>();
  for (const unit of units) byProject.set(unit.projectId, [...(byProject.get(unit.projectId) ?? []), unit]);
  const all = [...byProject.values()];
  for (let at = 0; at < all.length; at += PROJECTS_AT_ONCE) yield all.slice(at, at + PROJECTS_AT_ONCE).flat();
}
