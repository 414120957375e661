import type { Compute } from '../../domain/compute/compute.ts';
import { ownersNameBranches } from '../../domain/policy/owners.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ApiResult, CallOptions, ComputeList, ControlApi, Project } from '../../ports/control-api.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { CurrentRules } from '../rules.ts';
import { type Branches, type KnownBranches, readBranches, refusesBranches, withBranches } from './branches.ts';
import type { Fleet } from './fleet.ts';

/** While the list of projects shows no change of a project, its branches are trusted for this long, in real milliseconds. */
const BRANCHES_SERVE_MS = 3_600_000;

/** A refusal may be temporary: the first one is trusted for this long, in real milliseconds. */
const REFUSAL_SERVES_MS = 60_000;

export interface ReadComputesDeps {
  api: ControlApi;
  clock: Clock;
  fleet: Fleet;
  rules: CurrentRules;
  telemetry: Telemetry;
}

export interface ReadOptions extends CallOptions {
  /** Branches that were read longer ago, in real milliseconds, are read again; an hour if absent. */
  branchesServeMs?: number;
}

/**
 * The computes of a project, with the names and roles of their branches where a policy selects by them, or owners follow from them: that
 * costs one more request, now and then. An error if a policy selects by them and they can't be read at the moment: it could not decide.
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

/** True if something depends on the names and roles of branches. */
export function needsBranches({ current: { policies, costs } }: CurrentRules): boolean {
  return policies.selectsByBranch || ownersNameBranches(costs.owners);
}

/**
 * The branches of a project. They are read again when the project has changed, when a compute is on one that is not known yet,
 * and after a while. Where that is refused there are none: for a minute, and for as long as a list would serve once it was refused again.
 */
export async function branchesOf(
  deps: ReadComputesDeps,
  { projectId, updatedAtMs: projectUpdatedAtMs }: Project,
  computes: readonly Compute[],
  options: ReadOptions,
): Promise<ApiResult<Branches>> {
  const { branchesServeMs = BRANCHES_SERVE_MS } = options;
  const known = deps.fleet.branches.get(projectId);
  const readAtMonotonicMs = deps.clock.monotonicMs();
  if (
    known?.projectUpdatedAtMs === projectUpdatedAtMs &&
    readAtMonotonicMs - known.readAtMonotonicMs < Math.min(branchesServeMs, servesMs(known)) &&
    (known.refusedSinceMonotonicMs !== undefined || computes.every(({ branchId }) => known.branches.has(branchId)))
  ) {
    return { ok: true, value: known.branches };
  }
  const answer = await readBranches(deps.api, projectId, options);
  if (!answer.ok && !refusesBranches(answer.error)) return answer;
  const read = { branches: answer.ok ? answer.value : new Map(), projectUpdatedAtMs, readAtMonotonicMs };
  const refusedSinceMonotonicMs = known?.refusedSinceMonotonicMs ?? readAtMonotonicMs;
  if (!answer.ok && known?.refusedSinceMonotonicMs === undefined) {
    logBranchesRefused(deps, projectId, answer.error.message);
  }
  deps.fleet.branches.set(projectId, answer.ok ? read : { ...read, refusedSinceMonotonicMs });
  return { ok: true, value: read.branches };
}

/** Time for which a reading is usable. A refusal is kept as long as a list once a second try, a minute later, was refused too. */
function servesMs({ refusedSinceMonotonicMs, readAtMonotonicMs }: KnownBranches): number {
  if (refusedSinceMonotonicMs === undefined) return BRANCHES_SERVE_MS;
  return readAtMonotonicMs - refusedSinceMonotonicMs < REFUSAL_SERVES_MS ? REFUSAL_SERVES_MS : BRANCHES_SERVE_MS;
}

function logBranchesRefused({ telemetry }: ReadComputesDeps, projectId: string, message: string): void {
  telemetry.log.warn(
    { event: 'ebb.branch_names_refused', project: projectId },
    `the key may not list the branches of ${projectId} (${message}): only freezes count there of the policies whose selection hangs on a branch's name or role`,
  );
}
