import { chunksOf } from '../../common/chunks.ts';
import { groupBy } from '../../domain/grouping.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import type { UsageLowerBound } from '../../domain/usage/lower-bound.ts';
import { addUsage, DAYS_KEPT, mergeUsage, noUsage, type UnitUsage, usageEndMs } from '../../domain/usage/stored.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { ApiResult, ControlApi } from '../../ports/control-api.ts';
import { type AskedUsage, askUsage, EVERYTHING, mergedPlans, type UsageRange } from './read-usage.ts';
import { type Organization, UNITS_AT_ONCE, type UsageAccount, type UsageMetadata } from './usage-account.ts';

/** What is read every hour. Once a day {@link EVERYTHING} is read instead, since corrections come a day later, and late data at any time. */
const EACH_HOUR: UsageRange = { hours: 24, days: 0, months: 0 };

/** The usage of a day is complete this long after its end, in milliseconds. */
const DAY_KNOWN_AFTER_MS = 3 * HOUR_MS;

/** The usage of a deleted branch is stored separately for this time, in milliseconds. */
const GONE_KEPT_MS = 14 * DAY_MS;

/** At most this many units of an organization are stored; projects come first. */
const MAX_UNITS = 50_000;

export interface Collected {
  /** False if the hour had been read before. */
  isRead: boolean;
  /** The number of stored buckets that got another value. */
  corrected: number;
}

/**
 * Reads new usage of an organization and stores it. The first time, and once a day, reads everything that the control API has. If the control API
 * answers with an error, nothing is stored.
 */
export async function collectUsage(options: {
  api: Pick<ControlApi, 'usage'>;
  stored: UsageAccount;
  organization: Organization;
  nowMs: number;
  lowerBound?: UsageLowerBound;
  signal?: AbortSignal;
  /** Called once a day to store the days of trials. Returns the trials' names. */
  keepTrials?: (namesBefore: readonly string[]) => Promise<string[]>;
}): Promise<ApiResult<Collected>> {
  const { api, stored, organization, nowMs, lowerBound, signal, keepTrials } = options;
  const metadata = await stored.metadata();
  const hourMs = nowMs - (nowMs % HOUR_MS);
  const dayMs = hourMs - ((hourMs - DAY_KNOWN_AFTER_MS) % DAY_MS);
  if (metadata?.hourMs === hourMs) return { ok: true, value: { isRead: false, corrected: 0 } };
  const isNewDay = metadata === undefined || metadata.dayMs !== dayMs;
  const range = isNewDay ? EVERYTHING : EACH_HOUR;
  const answer = await askUsage({ api, ...organization, nowMs, lowerBound, signal }, range);
  if (!answer.ok) return answer;
  const corrected = await storeSeries(stored, answer.value);
  const gone = isNewDay
    ? await foldDeleted(stored, { answer: answer.value, gone: metadata?.gone ?? [], nowMs })
    : metadata.gone;
  const trials = isNewDay && keepTrials ? await keepTrials(metadata?.trials ?? []) : (metadata?.trials ?? []);
  const quantities = [...new Map([...(metadata?.quantities ?? []), ...answer.value.quantities])].slice(-DAYS_KEPT);
  await stored.putMetadata({
    hourMs,
    dayMs,
    gone,
    quantities,
    trials,
    plans: mergedPlans(metadata?.plans ?? [], answer.value.plans),
    months: [...new Map([...(metadata?.months ?? []), ...answer.value.months])],
  });
  return { ok: true, value: { isRead: true, corrected } };
}

async function storeSeries(stored: UsageAccount, { hours, days }: AskedUsage): Promise<number> {
  const byUnit = [...groupBy([...days, ...hours], unitName).values()].slice(0, MAX_UNITS);
  let corrected = 0;
  for (const chunk of chunksOf(byUnit, UNITS_AT_ONCE)) {
    const before = await stored.read(chunk.flatMap(([series]) => series ?? []));
    const changed = before.flatMap((usage, index) => {
      const merged = mergeUsage(usage, { buckets: (chunk[index] ?? []).flatMap(({ buckets }) => buckets) });
      corrected += merged.corrected;
      return merged.isChanged ? [merged.usage] : [];
    });
    await stored.put(changed);
  }
  return corrected;
}

/** Adds the usage of branches to `PROJECT/deleted` once they have been unlisted for {@link GONE_KEPT_MS}. Returns the other unlisted branches. */
async function foldDeleted(
  stored: UsageAccount,
  { answer, gone, nowMs }: { answer: AskedUsage; gone: UsageMetadata['gone']; nowMs: number },
): Promise<UsageMetadata['gone']> {
  if (answer.branchesProblem !== undefined) return gone;
  const listed = new Set([...answer.hours, ...answer.days].map(unitName));
  const since = new Map(gone);
  const notListed = (await stored.units()).filter((unit) => !listed.has(unitName(unit)));
  const isSum = ({ branchId }: UsageUnit) => branchId === null || branchId === DELETED;
  await forgetOld(stored, notListed.filter(isSum), nowMs);
  const unlisted = notListed.filter((unit) => !isSum(unit));
  const old = unlisted.filter((unit) => nowMs - (since.get(unitName(unit)) ?? nowMs) >= GONE_KEPT_MS);
  for (const unit of old) await fold(stored, unit);
  const folded = new Set(old.map(unitName));
  const names = unlisted.map(unitName).filter((name) => !folded.has(name));
  return names.map((name) => [name, since.get(name) ?? nowMs]);
}

const DELETED = 'deleted';

/** Deletes unlisted projects, and sums of deleted branches, once all of their days have expired. */
async function forgetOld(stored: UsageAccount, units: readonly UsageUnit[], nowMs: number): Promise<void> {
  for (const chunk of chunksOf(units, UNITS_AT_ONCE)) {
    const usage = await stored.read(chunk);
    await stored.forget(usage.filter((one) => usageEndMs(one) <= nowMs - DAYS_KEPT * DAY_MS));
  }
}

async function fold(stored: UsageAccount, unit: UsageUnit): Promise<void> {
  const into = { projectId: unit.projectId, branchId: DELETED };
  const [sum = noUsage(into), usage] = (await stored.read([into, unit])) as [UnitUsage?, UnitUsage?];
  if (usage !== undefined) await stored.put([addUsage(sum, usage)]);
  await stored.forget([unit]);
}
