import { bucketEnd, type Granularity, type Period, type Unit, unitId } from '../consumption/history.ts';
import { createRandom, nextUuid } from '../world/random.ts';
import { wireTime } from './times.ts';

const MIB_PER_HOUR = 1_048_576;

/** All metrics; the route for branches has the first six. */
export const METRICS = [
  'compute_unit_seconds',
  'root_branch_bytes_month',
  'child_branch_bytes_month',
  'instant_restore_bytes_month',
  'public_network_transfer_bytes',
  'private_network_transfer_bytes',
  'snapshot_storage_bytes_month',
  'extra_branches_month',
] as const;
export const BRANCH_METRICS: readonly string[] = METRICS.slice(0, 6);

function metricValue(metric: string, used: { cuMs: number; activeMs: number }): number {
  if (metric === 'compute_unit_seconds') return Math.round(used.cuMs / 1000);
  if (metric === 'root_branch_bytes_month') return MIB_PER_HOUR;
  if (metric === 'public_network_transfer_bytes') return Math.round(used.activeMs / 10);
  return 0;
}

/** The id of a period is the same at every request. */
function periodId(unit: Unit, startMs: number): string {
  let seed = Math.floor(startMs / 1000);
  for (const character of unit.ledger.orgId ?? '') seed = Math.imul(seed ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return nextUuid(createRandom(seed));
}

interface Shown {
  granularity: Granularity;
  metrics: readonly string[];
  zeros: 'omitted' | 'sent';
}

function renderPeriod(unit: Unit, period: Period, { granularity, metrics, zeros }: Shown) {
  return {
    period_id: periodId(unit, period.startMs),
    period_plan: period.plan,
    period_start: wireTime(period.startMs),
    ...(period.endMs !== undefined && { period_end: wireTime(period.endMs) }),
    consumption: [...period.buckets].map(([startMs, used]) => ({
      timeframe_start: wireTime(startMs),
      timeframe_end: wireTime(bucketEnd(startMs, granularity)),
      metrics: metrics
        .map((name) => ({ metric_name: name, value: metricValue(name, used) }))
        .filter(({ value }) => value !== 0 || zeros === 'sent'),
    })),
  };
}

/** One project or branch of an answer. */
export function renderConsumption(unit: Unit, periods: readonly Period[], shown: Shown): Record<string, unknown> {
  return {
    project_id: unit.ledger.projectId,
    branch_id: unit.branchId,
    periods: periods.map((period) => renderPeriod(unit, period, shown)),
  };
}

/** Where a page begins after the one whose cursor this is. */
export function afterCursor(units: readonly Unit[], cursor: string | undefined): number {
  return cursor === undefined ? 0 : units.findIndex((unit) => unitId(unit) === cursor) + 1;
}
