/** The leader sends the receivers of each owner a weekly digest: changes, costs and savings. */
import { groupBy } from '../../domain/grouping.ts';
import { digestOf, digestWeek, type WeekOfOwner } from '../../domain/notifications/digest.ts';
import { NOT_READ } from '../../domain/policy/owners.ts';
import { NOTHING, plus } from '../../domain/recommend/saving.ts';
import { tookEffect } from '../../domain/records/history.ts';
import type { Span } from '../../domain/time/span.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import { type BillLine, billOf, UNATTRIBUTED } from '../../domain/usage/bill.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import type { UsageSeries, UsageUnit } from '../../domain/usage/usage.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { Store } from '../../ports/store.ts';
import { outboxEntries } from '../notifications/notify.ts';
import { createToldMessages } from '../notifications/told.ts';
import { auditEntries } from '../pages.ts';
import type { CurrentRules } from '../rules.ts';
import { unreadProjects } from './cost-summary.ts';
import { addUnderName, type MonthCosts, pricesOf, projectsOf } from './month-costs.ts';
import { type Organization, usageAccount } from './usage-account.ts';

/** After a first start, digests wait this long at most until the owners of all projects are known, in milliseconds. */
const LONGEST_WAIT_MS = HOUR_MS;

export interface WeeklyDigestDeps {
  store: Store;
  clock: Pick<Clock, 'now'>;
  rules: CurrentRules;
}

/** The leader's facts about usage. */
export interface Spending {
  organizations: readonly Organization[];
  ownerOf: (unit: UsageUnit) => string;
  /** Includes the saving that enforcing would have made, if ebb observes. */
  months: readonly MonthCosts[];
}

/** Returns a function that queues the digests of a week once they are due. Digests that another leader queues again have the same ids. */
export function createWeeklyDigest({
  store,
  clock,
  rules,
}: WeeklyDigestDeps): (spendingNow: () => Spending) => Promise<void> {
  let doneMs = Number.NEGATIVE_INFINITY;
  let startedMs: number | undefined;
  return async (spendingNow) => {
    const { notify, costs } = rules.current;
    const week = digestWeek(clock.now());
    if (!week || week.toMs <= doneMs || notify.receivers.length === 0) return;
    const spending = spendingNow();
    startedMs ??= clock.now();
    const unread = unreadProjects(spending.months);
    if (unread > 0 && clock.now() < startedMs + LONGEST_WAIT_MS) return;
    const owners = await ownersOfWeek(store, spending, { week, costs, unread });
    const digests = owners.map((one) => digestOf(one, week));
    await createToldMessages(store).queue(outboxEntries(notify, digests));
    doneMs = week.toMs;
  };
}

/** Names in sums that are not owners. */
const NOBODY: ReadonlySet<string> = new Set([UNATTRIBUTED, NOT_READ]);

/** Every owner with changes or usage in the week. */
async function ownersOfWeek(
  store: Store,
  { organizations, ownerOf, months }: Spending,
  { week, costs, unread }: { week: Span; costs: CostRules; unread: number },
): Promise<WeekOfOwner[]> {
  const changed = await changesOf(store, week);
  const used = new Map<string, BillLine>();
  for (const one of organizations) await addUsage(used, { store, organization: one, ownerOf, week, costs });
  for (const [owner, { cuSeconds }] of used) if (cuSeconds === 0 || NOBODY.has(owner)) used.delete(owner);
  const saved = months.flatMap(({ counterfactual = [] }) => counterfactual);
  return [...new Set([...changed.keys(), ...used.keys()])].sort().map((owner) => {
    const { changes = 0, restarts = 0, computes } = changed.get(owner) ?? {};
    const line = used.get(owner);
    const savedOfOwner = saved.filter((one) => one.owner === owner);
    const { low, high } = savedOfOwner.reduce((total, one) => plus(total, one.saved), NOTHING).cuSeconds;
    return {
      owner,
      changes,
      restarts,
      computes: computes?.size ?? 0,
      ...(line && { cost: { cuHours: line.cuSeconds / 3600, usd: line.usd, unknownHours: line.unknownHours } }),
      ...(unread > 0 && { unreadProjects: unread }),
      ...(savedOfOwner.length > 0 && { wouldHaveSaved: { low: low / 3600, high: high / 3600 } }),
    };
  });
}

interface Changes {
  changes: number;
  restarts: number;
  computes: Set<string>;
}

/** Changes that took effect in the week, by the compute's owner at that time. */
async function changesOf(store: Store, { fromMs, toMs }: Span): Promise<Map<string, Changes>> {
  const owners = new Map<string, Changes>();
  for await (const entry of auditEntries(store, { sinceMs: fromMs, untilMs: toMs - 1 })) {
    const { kind, owner, computeId } = entry;
    if (owner === undefined || (kind !== 'write' && kind !== 'restart') || !tookEffect(entry)) continue;
    const counted = owners.get(owner) ?? { changes: 0, restarts: 0, computes: new Set() };
    counted[kind === 'write' ? 'changes' : 'restarts'] += 1;
    counted.computes.add(computeId);
    owners.set(owner, counted);
  }
  return owners;
}

async function addUsage(
  used: Map<string, BillLine>,
  options: { store: Store; organization: Organization; ownerOf: Spending['ownerOf']; week: Span; costs: CostRules },
): Promise<void> {
  const { store, organization, ownerOf, week, costs } = options;
  const stored = usageAccount(store, organization);
  const metadata = await stored.metadata();
  if (!metadata) return;
  const bill = { lineOf: ownerOf, byProject: false, priceAt: pricesOf(metadata, costs, organization.account) };
  for (const units of projectsOf(await stored.units())) {
    const series = (await stored.read(units)).map(seriesOf);
    for (const ofProject of groupBy(series, ({ projectId }) => projectId).values())
      for (const line of billOf({ ...bill, series: ofProject, ...week }).lines)
        for (const ownerLine of withUnknownHours(line, ofProject, ownerOf)) addUnderName(used, ownerLine);
  }
}

/**
 * Returns a line of a project's bill. Unknown hours that are attributed to nobody are returned once more for each owner of a branch, since they
 * may be that owner's.
 */
function withUnknownHours(line: BillLine, ofProject: readonly UsageSeries[], ownerOf: Spending['ownerOf']): BillLine[] {
  if (line.name !== UNATTRIBUTED || line.unknownHours === 0) return [line];
  const owners = new Set(ofProject.filter(({ branchId }) => branchId !== null).map(ownerOf));
  return [line, ...[...owners].map((name) => ({ name, cuSeconds: 0, usd: 0, unknownHours: line.unknownHours }))];
}
