import { z } from 'zod';
import { chunksOf } from '../../common/chunks.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CallOptions, ControlApi, UsagePages, UsageQuery } from '../../ports/control-api.ts';
import type { Caller } from './api-call.ts';
import { underDeadline } from './deadline.ts';
import { createMemoryBudgets } from './group-budget.ts';
import { createRateBudget } from './rate-budget.ts';
import { ask, type Request } from './requests.ts';
import { listPages } from './routes.ts';
import { Instant, WireId } from './wire.ts';

/** Half of the service's limit: all programs of an account share 50 requests a minute on these routes. */
const LIMITS = { perMinute: 25, perRouteSecond: 5, jitterMs: 250 };

/** A page waits for the budget, so it may take longer than other calls. */
const DEADLINE_MS = 120_000;

const ROUTES = {
  projects: { template: '/consumption_history/v2/projects', limit: 100 },
  branches: { template: '/consumption_history/v2/branches', limit: 1000 },
};

/** Projects in one request for branches. */
const MAX_PROJECT_IDS = 100;

const WireUnit = z.object({
  project_id: WireId,
  branch_id: WireId.nullish(),
  periods: z.array(
    z.object({
      period_plan: z.string(),
      period_start: Instant,
      consumption: z.array(
        z.object({
          timeframe_start: Instant,
          metrics: z.array(z.object({ metric_name: z.string(), value: z.number().min(0) })).default([]),
        }),
      ),
    }),
  ),
});
type WireUnit = z.output<typeof WireUnit>;

const pagination = z.object({ cursor: z.string().nullish() }).nullish();
const Page = z.union([
  z.object({ projects: z.array(WireUnit), pagination }),
  z.object({ branches: z.array(WireUnit), pagination }),
]);

/** Reads usage within half of the rate limit that these routes have of their own. */
export function createUsageReader({ call, clock }: { call: Caller; clock: Clock }): ControlApi['usage'] {
  const budgets = createMemoryBudgets({ limits: LIMITS, assumesUnused: true, clock });
  const budget = createRateBudget({ budgets, perMinute: LIMITS.perMinute, clock });

  /** The units of one list: all projects, or the branches of `projectIds`. */
  function unitsOf(query: UsageQuery, projectIds: readonly string[] | undefined, options: CallOptions) {
    const { template } = ROUTES[query.level];
    const request: Request = { account: query.account, method: 'GET', template };
    const wait = { deadlineMs: DEADLINE_MS, parents: options.signal ? [options.signal] : [], clock };
    return listPages<WireUnit>(clock, request, async (cursor) => {
      const budgetRequest = { account: query.account, route: template, priority: 'background' as const };
      await underDeadline(wait, (signal) => budget.acquire(budgetRequest, signal));
      const pageRequest = { ...request, query: { ...queryOf(query, projectIds), cursor } };
      const answer = await ask(call, pageRequest, Page, { deadlineMs: DEADLINE_MS, ...options });
      if (!answer.ok) return answer;
      const items = 'projects' in answer.value ? answer.value.projects : answer.value.branches;
      return { ok: true, value: { items, cursor: answer.value.pagination?.cursor ?? undefined } };
    });
  }

  async function* unitsOfAll(query: UsageQuery, options: CallOptions) {
    const lists = query.level === 'projects' ? [undefined] : chunksOf(query.projectIds ?? [], MAX_PROJECT_IDS);
    for (const projectIds of lists) yield* unitsOf(query, projectIds, options);
  }

  return async (query, options = {}) => {
    const pages: UsagePages = { units: [], plans: new Map() };
    for await (const page of unitsOfAll(query, options)) {
      if (!page.ok) return page;
      for (const unit of page.value) add(pages, unit);
    }
    return { ok: true, value: pages };
  };
}

function queryOf(query: UsageQuery, projectIds: readonly string[] | undefined): NonNullable<Request['query']> {
  return {
    org_id: query.organization,
    from: new Date(query.fromMs).toISOString(),
    to: new Date(query.toMs).toISOString(),
    granularity: query.granularity,
    metrics: query.metrics.join(','),
    ...(projectIds && { project_ids: projectIds.join(',') }),
    limit: ROUTES[query.level].limit,
  };
}

/** A bucket in which the plan changed is in two periods, whose values are added. */
function add({ units, plans }: UsagePages, { project_id: projectId, branch_id: branchId, periods }: WireUnit): void {
  const buckets = new Map<number, Record<string, number>>();
  for (const { period_plan: plan, period_start: startMs, consumption } of periods) {
    plans.set(startMs, plan);
    for (const { timeframe_start: bucketMs, metrics } of consumption) {
      const values = buckets.get(bucketMs) ?? {};
      for (const { metric_name: name, value } of metrics) values[name] = (values[name] ?? 0) + value;
      buckets.set(bucketMs, values);
    }
  }
  units.push({ projectId, branchId: branchId ?? null, buckets });
}
