import type { Compute } from '../../domain/compute/compute.ts';
import { ownersNameBranches } from '../../domain/policy/owners.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ApiResult, CallOptions, ComputeList, ControlApi, Project } from '../../ports/control-api.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { CurrentRules } from '../rules.ts';
import {
  type Branches,
  describeRefusal,
  type ListedBranches,
  readBranches,
  refusesBranches,
  withBranches,
} from './branches.ts';
import type { Fleet } from './fleet.ts';

/** How long branches are valid while their project is listed as unchanged, in real milliseconds. */
const BRANCHES_VALID_MS = HOUR_MS;

/** How long a first refusal is valid, in real milliseconds: it may be temporary. */
const REFUSAL_VALID_MS = 60_000;

export interface ReadComputesDeps {
  api: ControlApi;
  clock: Clock;
  fleet: Fleet;
  rules: CurrentRules;
  telemetry: Telemetry;
}

export interface ReadOptions extends CallOptions {
  /** Branches that were read longer ago than this are read again, in real milliseconds; by default {@link BRANCHES_VALID_MS}. */
  branchesMaxAgeMs?: number;
}

/**
 * Reads the computes of a project, and their branches if policies or owners need them, which sometimes costs one more request. Fails if
 * policies select by branch and the branches can't be read, since nothing could be decided.
 */
export async function readComputes(
  deps: ReadComputesDeps,
  project: Project,
  options: ReadOptions,
): Promise<ApiResult<ComputeList>> {
  const answer = await deps.api.listComputes(project, options);
  if (!answer.ok || !needsBranches(deps.rules)) return answer;
  const { computes, unreadable } = answer.value;
  const branches = await branchesOf(deps, project, computes, options);
  if (branches.ok) return { ok: true, value: { computes: withBranches(computes, branches.value), unreadable } };
  return deps.rules.current.policies.selectsByBranch ? branches : answer;
}

/** Returns true if policies or owners depend on the names and roles of branches. */
export function needsBranches({ current: { policies, costs } }: CurrentRules): boolean {
  return policies.selectsByBranch || ownersNameBranches(costs.owners);
}

/**
 * Returns the branches of a project. They are read again when the project has changed, when a compute is on an unknown branch, and after a
 * while. If the key may not list branches, returns none, and asks again a minute after the first refusal, and an hour after a later one.
 */
export async function branchesOf(
  deps: ReadComputesDeps,
  { projectId, updatedAtMs: projectUpdatedAtMs }: Project,
  computes: readonly Compute[],
  options: ReadOptions,
): Promise<ApiResult<Branches>> {
  const { branchesMaxAgeMs = BRANCHES_VALID_MS } = options;
  const last = deps.fleet.branches.get(projectId);
  const readAtMonotonicMs = deps.clock.monotonicMs();
  if (
    last?.projectUpdatedAtMs === projectUpdatedAtMs &&
    readAtMonotonicMs - last.readAtMonotonicMs < Math.min(branchesMaxAgeMs, validForMs(last)) &&
    (last.refusedSinceMonotonicMs !== undefined || computes.every(({ branchId }) => last.branches.has(branchId)))
  ) {
    return { ok: true, value: last.branches };
  }
  const answer = await readBranches(deps.api, projectId, options);
  if (!answer.ok && !refusesBranches(answer.error)) return answer;
  const read = { branches: answer.ok ? answer.value : new Map(), projectUpdatedAtMs, readAtMonotonicMs };
  const refusedSinceMonotonicMs = last?.refusedSinceMonotonicMs ?? readAtMonotonicMs;
  if (!answer.ok && last?.refusedSinceMonotonicMs === undefined) {
    logBranchesRefused(deps, projectId, answer.error.message);
  }
  deps.fleet.branches.set(projectId, answer.ok ? read : { ...read, refusedSinceMonotonicMs });
  return { ok: true, value: read.branches };
}

function validForMs({ refusedSinceMonotonicMs, readAtMonotonicMs }: ListedBranches): number {
  if (refusedSinceMonotonicMs === undefined) return BRANCHES_VALID_MS;
  return readAtMonotonicMs - refusedSinceMonotonicMs < REFUSAL_VALID_MS ? REFUSAL_VALID_MS : BRANCHES_VALID_MS;
}

function logBranchesRefused({ telemetry }: ReadComputesDeps, projectId: string, message: string): void {
  telemetry.log.warn(
    { event: 'ebb.branch_names_refused', project: projectId },
    describeRefusal(`${projectId} (${message})`),
  );
}
