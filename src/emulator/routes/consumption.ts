import { z } from 'zod';
import {
  bucketEnd,
  bucketStart,
  type Granularity,
  type Period,
  periodsOf,
  type Unit,
  unitId,
} from '../consumption/history.ts';
import { parseInput } from '../wire/bodies.ts';
import { type Answer, errorAnswer, refusalAnswer } from '../wire/render.ts';
import { wireTime, wireTimeIfAny } from '../wire/times.ts';
import type { ApiKey } from '../world/accounts.ts';
import type { WorldState } from '../world/entities.ts';
import { permissionRefusal } from '../world/permissions.ts';
import { createRandom, hashText, nextUuid } from '../world/random.ts';
import { DAY_MS } from '../world/units.ts';
import { type AuthorisedRequest, type Route, readLimit } from './route.ts';

/** How far back each granularity goes from the present bucket, in milliseconds. */
export const LOOKBACK_MS: Record<Granularity, number> = {
  hourly: 7 * DAY_MS,
  daily: 60 * DAY_MS,
  monthly: 366 * DAY_MS,
};

const instant = z.iso.datetime({ offset: true }).transform(Date.parse);
const list = z.string().transform((text) => text.split(',').filter((part) => part !== ''));
const querySchema = z.object({
  from: instant,
  to: instant,
  granularity: z.enum(['hourly', 'daily', 'monthly']),
  org_id: z.string(),
  metrics: list,
  project_ids: list.optional(),
  branch_ids: list.optional(),
});

type Query = z.output<typeof querySchema>;
type Checked = { ok: true; query: Query } | { ok: false; answer: Answer };

/** Checks that both routes share. For a key without access, the organization doesn't exist. */
function checkQuery(request: AuthorisedRequest, world: WorldState, metrics: readonly string[]): Checked {
  const refused = (status: number, message: string): Checked => ({ ok: false, answer: errorAnswer(status, message) });
  const parsed = parseInput(querySchema, request.query);
  if (!parsed.ok) return refused(400, parsed.message);
  const query = parsed.value;
  if (!isMember(world, request.key, query.org_id)) return refused(404, 'organization not found');
  const unknown = query.metrics.find((metric) => !metrics.includes(metric));
  if (unknown !== undefined || query.metrics.length === 0) return refused(400, `metrics: ${unknown ?? 'none'}`);
  const ledgers = [...world.ledgers.values()].filter(({ orgId }) => orgId === query.org_id);
  if (ledgers.length > 0 && ledgers.every(({ plans }) => plans.at(-1)?.plan === 'free')) {
    return refused(403, 'consumption history is not available on this plan');
  }
  const range = rangeOf(query, world);
  const oldestMs = bucketStart(world.nowMs, query.granularity) - LOOKBACK_MS[query.granularity];
  if (
    range.fromMs >= range.toMs ||
    range.fromMs < oldestMs ||
    range.toMs > bucketEnd(range.presentBucketMs, query.granularity)
  ) {
    return refused(406, 'the range is not valid for this granularity');
  }
  return { ok: true, query };
}

function isMember(world: WorldState, key: ApiKey, orgId: string): boolean {
  if (key.kind === 'project') return false;
  if (key.kind === 'organization') return key.orgId === orgId;
  return permissionRefusal(world, key, { kind: 'organization', orgId, role: 'member' }) === undefined;
}

/** Both ends are rounded down. If open buckets are sent, the range includes the bucket of `to`. */
function rangeOf({ from, to, granularity }: Query, { consumption, nowMs }: WorldState) {
  const end = bucketStart(to, granularity);
  const isOpen = consumption.openBucket === 'sent' && to > end;
  return {
    granularity,
    presentBucketMs: bucketStart(nowMs, granularity),
    fromMs: bucketStart(from, granularity),
    toMs: isOpen ? bucketEnd(end, granularity) : end,
  };
}

function pageAnswer(
  field: 'projects' | 'branches',
  units: readonly Unit[],
  request: AuthorisedRequest,
  { query, limit }: { query: Query; limit: number },
  world: WorldState,
): Answer {
  const { cursor } = request.query;
  const start = cursor ? units.findIndex((unit) => unitId(unit) === cursor) + 1 : 0;
  const page = units.slice(start, start + limit);
  const last = page.at(-1);
  // An empty last page repeats the cursor of the request.
  const next = last === undefined ? cursor : unitId(last);
  const items = page.map((unit) => renderConsumption(unit, query, world));
  return { status: 200, body: { [field]: items, pagination: next === undefined ? undefined : { cursor: next } } };
}

function isListed(world: WorldState, deletedAtMs: number | undefined): boolean {
  return deletedAtMs === undefined || world.consumption.deleted === 'listed';
}

const projects: Route = {
  method: 'GET',
  template: '/consumption_history/v2/projects',
  needs: () => ({ kind: 'any_key' }),
  answer(request, platform) {
    const world = platform.world();
    if (world.consumption.routes === 'none') return errorAnswer(404, 'not found');
    const limit = readLimit(request.query.limit, { fallback: 10, max: 100 });
    if (!limit.ok) return errorAnswer(400, limit.message);
    const checked = checkQuery(request, world, METRICS);
    if (!checked.ok) return checked.answer;
    const { org_id: orgId, project_ids: ids } = checked.query;
    const units = [...world.ledgers.values()]
      .filter((ledger) => ledger.orgId === orgId && isListed(world, ledger.deletedAtMs))
      .filter(({ projectId }) => ids === undefined || ids.includes(projectId))
      .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.projectId < b.projectId ? 1 : -1))
      .map((ledger) => ({ ledger }));
    return pageAnswer('projects', units, request, { query: checked.query, limit: limit.limit }, world);
  },
};

const branches: Route = {
  method: 'GET',
  template: '/consumption_history/v2/branches',
  needs: () => ({ kind: 'any_key' }),
  answer(request, platform) {
    const world = platform.world();
    if (world.consumption.routes !== 'both') return errorAnswer(404, 'not found');
    const limit = readLimit(request.query.limit, { fallback: 100, max: 1000 });
    if (!limit.ok) return errorAnswer(400, limit.message);
    const checked = checkQuery(request, world, BRANCH_METRICS);
    if (!checked.ok) return checked.answer;
    const { org_id: orgId, project_ids: ids, branch_ids: branchIds } = checked.query;
    if (ids === undefined || ids.length === 0 || ids.length > 100) {
      return refusalAnswer({ code: 'invalid', message: 'project_ids: 1 to 100 are required' });
    }
    const units = [...world.ledgers.values()]
      .filter((ledger) => ledger.orgId === orgId && ids.includes(ledger.projectId))
      .filter((ledger) => isListed(world, ledger.deletedAtMs))
      .sort((a, b) => (a.projectId < b.projectId ? -1 : 1))
      .flatMap((ledger) =>
        [...ledger.branches]
          .filter(([id, { deletedAtMs }]) => isListed(world, deletedAtMs) && (branchIds?.includes(id) ?? true))
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([branchId]) => ({ ledger, branchId })),
      );
    return pageAnswer('branches', units, request, { query: checked.query, limit: limit.limit }, world);
  },
};

export const CONSUMPTION_ROUTES: readonly Route[] = [projects, branches];

/** The storage that every unit shows for root branches in every bucket: one MiB. */
const STORAGE_BYTES = 1_048_576;

/** The route for branches has the first six. */
const METRICS = [
  'compute_unit_seconds',
  'root_branch_bytes_month',
  'child_branch_bytes_month',
  'instant_restore_bytes_month',
  'public_network_transfer_bytes',
  'private_network_transfer_bytes',
  'snapshot_storage_bytes_month',
  'extra_branches_month',
] as const;
const BRANCH_METRICS: readonly string[] = METRICS.slice(0, 6);

function metricValue(metric: string, used: { cuMs: number; activeMs: number }): number {
  if (metric === 'compute_unit_seconds') return Math.round(used.cuMs / 1000);
  if (metric === 'root_branch_bytes_month') return STORAGE_BYTES;
  if (metric === 'public_network_transfer_bytes') return Math.round(used.activeMs / 10);
  return 0;
}

/** The id of a period: the same for all projects of an organization, at every request. */
function periodId(unit: Unit, startMs: number): string {
  return nextUuid(createRandom(hashText(unit.ledger.orgId ?? '', Math.floor(startMs / 1000))));
}

function renderPeriod(
  unit: Unit,
  period: Period,
  { granularity, metrics }: Pick<Query, 'granularity' | 'metrics'>,
  zeros: 'omitted' | 'sent',
) {
  return {
    period_id: periodId(unit, period.startMs),
    period_plan: period.plan,
    period_start: wireTime(period.startMs),
    period_end: wireTimeIfAny(period.endMs),
    consumption: [...period.buckets].map(([startMs, used]) => ({
      timeframe_start: wireTime(startMs),
      timeframe_end: wireTime(bucketEnd(startMs, granularity)),
      metrics: metrics
        .map((name) => ({ metric_name: name, value: metricValue(name, used) }))
        .filter(({ value }) => value !== 0 || zeros === 'sent'),
    })),
  };
}

function renderConsumption(unit: Unit, query: Query, world: WorldState): Record<string, unknown> {
  const periods = periodsOf(world, unit, rangeOf(query, world));
  return {
    project_id: unit.ledger.projectId,
    branch_id: unit.branchId,
    periods: periods.map((period) => renderPeriod(unit, period, query, world.consumption.zeros)),
  };
}
