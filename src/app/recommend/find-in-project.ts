import { createOperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { ACCOUNT_PLANS } from '../../domain/compute/cost.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { recommend } from '../../domain/recommend/recommend.ts';
import type { HolidaysOf } from '../../domain/recommend/windows.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import type { UsageSeries } from '../../domain/usage/usage.ts';
import type { ApiResult, CallOptions, ControlApi, Project } from '../../ports/control-api.ts';
import type { UsageStore } from '../../ports/store.ts';
import type { FindingDocument } from '../../ports/waste.ts';
import { readBranches, refusesBranches, withBranches } from '../fleet/branches.ts';
import { addOperations, readOperations } from '../fleet/read-operations.ts';
import type { CompiledRules } from '../rules.ts';
import { usageAccount } from '../usage/usage-account.ts';
import { recommendFacts } from './facts.ts';
import { findingDocument } from './finding-document.ts';
import { pastOfComputes } from './past.ts';

const DAY_MS = 86_400_000;
/** How far is looked back, as `ebb recommend` does. */
const DAYS = 28;

interface FindInProjectOptions {
  api: Pick<ControlApi, 'operationsFrom' | 'listBranches'>;
  store: UsageStore;
  project: Project;
  computes: readonly Compute[];
  rules: CompiledRules;
  holds: readonly Hold[];
  holidaysOf: HolidaysOf;
  nowMs: number;
  signal: AbortSignal;
  /** Real milliseconds from an arbitrary start. */
  monotonicMs: () => number;
}

/**
 * What would cost less in one project: its operations of four weeks, in the background's share of the rate limit, and the usage that
 * is kept. Reads only, and wakes nothing.
 */
export async function findInProject(options: FindInProjectOptions): Promise<ApiResult<FindingDocument[]>> {
  const { api, project, rules, holds, holidaysOf, nowMs, signal, monotonicMs } = options;
  const background = { priority: 'background', signal } as const;
  const fromMs = nowMs - DAYS * DAY_MS;
  const log = createOperationLog();
  const ofProject = log.project(project.projectId);
  const read = await readOperations({
    ...{ api, projects: [project], sinceMs: fromMs, nowMs, monotonicMs, ...background },
    onPage(_, operations, complete) {
      addOperations(ofProject, operations);
      if (complete) ofProject.coverFrom(fromMs);
    },
  });
  const [error] = read.errors;
  if (error) return { ok: false, error };
  const computes = await named(options, background);
  if (!computes.ok) return computes;
  const { usage, plan } = await usageOf(options);
  const { prices, owners, coldStartWorthMs } = rules.costs;
  const pricing = () => (plan === undefined ? {} : { plan, price: prices[plan] });
  const past = pastOfComputes({ computes: computes.value, log, usage, fromMs, toMs: nowMs, pricing });
  const profileOf = (account: string) => {
    const profile = rules.profiles.get(account);
    if (!profile) throw new Error(`no profile of account ${account}`);
    return profile;
  };
  const facts = recommendFacts(past, { owners, coldStartWorthMs, policies: rules.policies, holds, profileOf });
  return { ok: true, value: recommend(facts, { holidaysOf }).map(findingDocument) };
}

/** With the names of their branches, by which previews are told; without them where the key may not list branches. */
async function named(
  { api, project, computes }: FindInProjectOptions,
  call: CallOptions,
): Promise<ApiResult<readonly Compute[]>> {
  if (computes.every(({ branchName }) => branchName !== undefined)) return { ok: true, value: computes };
  const branches = await readBranches(api, project.projectId, call);
  if (branches.ok) return { ok: true, value: withBranches(computes, branches.value) };
  return refusesBranches(branches.error) ? { ok: true, value: computes } : branches;
}

/** What is kept of the usage of its branches, and the plan of the account. */
async function usageOf({ store, project, computes, rules }: FindInProjectOptions) {
  const { account, organizationId: organization, projectId } = project;
  const ofSettings = rules.costs.plans.get(account);
  if (organization === undefined) return { usage: [] as UsageSeries[], plan: ofSettings };
  const kept = usageAccount(store, { account, organization });
  const about = await kept.about();
  const branchIds = new Set(computes.map(({ branchId }) => branchId));
  const usage = about
    ? (await kept.read([...branchIds].map((branchId) => ({ projectId, branchId })))).map(seriesOf)
    : [];
  const [, plan] = about?.plans.at(-1) ?? [];
  return { usage, plan: ofSettings ?? ACCOUNT_PLANS.find((one) => one === plan) };
}
