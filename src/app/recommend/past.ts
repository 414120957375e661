/** The past of computes, from operations and usage that were read: what findings and causes are computed from. */
import { type AwakeHistory, awakeHistory, within } from '../../domain/awake/intervals.ts';
import type { OperationLog } from '../../domain/awake/operation-log.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { UsageBucket, UsageSeries } from '../../domain/usage/usage.ts';

/** A compute and its past. */
export interface PastCompute {
  compute: Compute;
  /** Made when it is asked for: those of a large fleet together would fill the memory. */
  readHistory(): AwakeHistory;
  /** CU-seconds of its branch, where it is the branch's only compute. */
  hours?: readonly UsageBucket[];
  plan?: AccountPlan;
  /** US dollars for a CU-hour; absent where nobody said which plan the account has. */
  price?: number;
}

/** Puts together what is known of each compute between two instants, milliseconds since the epoch. */
export function pastOfComputes(options: {
  computes: readonly Compute[];
  log: Pick<OperationLog, 'projects'>;
  usage: readonly UsageSeries[];
  fromMs: number;
  toMs: number;
  pricing: (compute: Compute) => Pick<PastCompute, 'plan' | 'price'>;
}): PastCompute[] {
  const { log, usage, fromMs, toMs, pricing } = options;
  const projects = new Map(log.projects.map((project) => [project.projectId, project]));
  const hours = new Map(usage.map((series) => [`${series.projectId} ${series.branchId}`, series.buckets]));
  const onBranch = countBy(options.computes, branchKey);
  return options.computes.map((compute) => {
    const project = projects.get(compute.projectId);
    const coveredFromMs = Math.max(project?.fromMs ?? toMs, fromMs);
    const readHistory = () => {
      const events = project?.eventsOf(compute.computeId) ?? [];
      return within(awakeHistory(events, { fromMs: project?.fromMs ?? toMs, toMs, hint: compute }), coveredFromMs);
    };
    const ofBranch = onBranch.get(branchKey(compute)) === 1 ? hours.get(branchKey(compute)) : undefined;
    return { compute, readHistory, ...(ofBranch && { hours: ofBranch }), ...pricing(compute) };
  });
}

function branchKey({ projectId, branchId }: Compute): string {
  return `${projectId} ${branchId}`;
}

function countBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1);
  return counts;
}
