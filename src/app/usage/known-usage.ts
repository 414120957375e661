/** The usage of an organization from what daemons have kept of it, with what the control API says beside it where that is older. */
import { HOUR_MS } from '../../domain/time/units.ts';
import { mergeUsage, noUsage, seriesOf, type UnitUsage } from '../../domain/usage/stored.ts';
import { type UsageSeries, unitName } from '../../domain/usage/usage.ts';
import type { ApiResult } from '../../ports/control-api.ts';
import { askUsage, EVERYTHING, type OrganizationUsage, type ReadUsageOptions } from './read-usage.ts';
import type { UsageAbout, UsageReader } from './usage-account.ts';

/** A daemon reads each hour; what is older than this is asked for again, in milliseconds. */
const FRESH_MS = 2 * HOUR_MS;

const UNITS_AT_ONCE = 500;

/**
 * Everything that is known of an organization: kept by daemons for longer than the control API knows it, and asked for only where
 * nothing was collected lately. An error only if nothing is kept either.
 */
export async function readKnownUsage(
  kept: UsageReader | undefined,
  options: ReadUsageOptions,
): Promise<ApiResult<OrganizationUsage>> {
  const about = await kept?.about();
  const before = kept && about ? await readUnits(kept) : new Map<string, UnitUsage>();
  if (about && about.hourMs > options.nowMs - FRESH_MS) return { ok: true, value: usageOf(options, about, before) };
  const asked = await askUsage(options, EVERYTHING);
  if (!asked.ok) return about ? { ok: true, value: usageOf(options, about, before) } : asked;
  const { hours, days, ...others } = asked.value;
  for (const [name, buckets] of bucketsByUnit([...days, ...hours])) {
    const usage = before.get(name) ?? noUsage(buckets.unit);
    before.set(name, mergeUsage(usage, buckets).usage);
  }
  const plans = [...new Map([...(about?.plans ?? []), ...others.plans])].sort(([a], [b]) => a - b);
  const months = new Map([...(about?.months ?? []), ...others.months]);
  const quantities = new Map([...(about?.quantities ?? []), ...others.quantities]);
  const { account, organization } = options;
  return { ok: true, value: { account, organization, ...others, plans, months, quantities, series: seriesIn(before) } };
}

function usageOf(
  { account, organization }: ReadUsageOptions,
  { plans, months, quantities }: UsageAbout,
  usage: ReadonlyMap<string, UnitUsage>,
): OrganizationUsage {
  const known = { plans, months: new Map(months), quantities: new Map(quantities) };
  return { account, organization, ...known, series: seriesIn(usage) };
}

async function readUnits(kept: UsageReader): Promise<Map<string, UnitUsage>> {
  const units = await kept.units();
  const usage = new Map<string, UnitUsage>();
  for (let at = 0; at < units.length; at += UNITS_AT_ONCE) {
    for (const one of await kept.read(units.slice(at, at + UNITS_AT_ONCE))) usage.set(unitName(one), one);
  }
  return usage;
}

function bucketsByUnit(all: readonly UsageSeries[]) {
  const byUnit = new Map<string, { unit: UsageSeries; buckets: UsageSeries['buckets'][number][] }>();
  for (const series of all) {
    const known = byUnit.get(unitName(series)) ?? { unit: series, buckets: [] };
    known.buckets.push(...series.buckets);
    byUnit.set(unitName(series), known);
  }
  return byUnit;
}

function seriesIn(usage: ReadonlyMap<string, UnitUsage>): UsageSeries[] {
  return [...usage.values()].map(seriesOf);
}
