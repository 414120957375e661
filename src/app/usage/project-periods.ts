import pLimit from 'p-limit';
import { ACCOUNT_PLANS, type AccountPlan } from '../../domain/compute/cost.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { PlanTimes } from '../../domain/usage/month.ts';
import type { ControlApi, ControlApiError, Project, ProjectPeriod } from '../../ports/control-api.ts';
import { UNHURRIED_DEADLINE_MS } from '../fleet/read-fleet.ts';

const CONCURRENT_REQUESTS = 10;

/** Reads the usage of projects in their billing periods, with one request each. Works on every plan. */
export async function readPeriods(options: {
  api: Pick<ControlApi, 'projectPeriod'>;
  projects: readonly Project[];
  onProgress?: (progress: { done: number; projects: number }) => void;
}): Promise<{ periods: Map<string, ProjectPeriod>; errors: ControlApiError[] }> {
  const { api, projects, onProgress } = options;
  const periods = new Map<string, ProjectPeriod>();
  const errors: ControlApiError[] = [];
  await pLimit(CONCURRENT_REQUESTS).map(projects, async (project) => {
    const read = await api.projectPeriod(project, { deadlineMs: UNHURRIED_DEADLINE_MS });
    if (read.ok) periods.set(project.projectId, read.value);
    else errors.push({ projectId: project.projectId, ...read.error });
    onProgress?.({ done: periods.size + errors.length, projects: projects.length });
  });
  return { periods, errors };
}

/** Returns the latest plan; undefined if there is none, or ebb does not know it. */
export function lastPlan(plans: PlanTimes): AccountPlan | undefined {
  const [, last] = plans.at(-1) ?? [];
  return ACCOUNT_PLANS.find((plan) => plan === last);
}

/** Reads the plans of accounts whose plan is not known, from the first project of each. Accounts without an answer are left out. */
export async function readPlans(options: {
  api: Pick<ControlApi, 'projectPeriod'>;
  projects: readonly Project[];
  isKnown: (account: string) => boolean;
}): Promise<Map<string, AccountPlan>> {
  const { api, projects, isKnown } = options;
  const byAccount = groupBy(projects, ({ account }) => account);
  const projectsToAsk = [...byAccount].flatMap(([account, [first]]) => (isKnown(account) || !first ? [] : [first]));
  const { periods } = await readPeriods({ api, projects: projectsToAsk });
  return new Map(
    projectsToAsk.flatMap(({ account, projectId }) => {
      const plan = periods.get(projectId)?.plan;
      return plan === undefined ? [] : [[account, plan] as const];
    }),
  );
}
