import pLimit from 'p-limit';
import { searchAgainAt } from '../../domain/decide/boundaries.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground, Running } from '../background.ts';
import { adoptProject } from '../evaluate-project/adopt-project.ts';
import type { EvaluateDeps } from '../evaluate-project/evaluate.ts';
import { isAtBoundary } from '../fleet/at-boundary.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { askForProject } from '../fleet/forget-project.ts';
import type { Overrides } from '../overrides.ts';
import type { CompiledRules } from '../rules.ts';
import type { LeaderLease } from './leader.ts';

/** Interval between checks, in real milliseconds. */
const CHECK_EVERY_MS = 2_000;
const CONCURRENT_READS = 8;

/** A daemon that has reached a boundary has evaluated it in this time, in milliseconds. */
const PAST_BOUNDARY_MS = 10_000;

export interface LeaderRefreshDeps extends EvaluateDeps {
  api: ControlApi;
  store: Store;
  telemetry: Telemetry;
  fleet: Fleet;
  overrides: Overrides;
  leaderLease: LeaderLease;
  runInBackground: RunInBackground;
  /** Interval between rounds over projects that other daemons have reconciled, in real milliseconds. */
  rhythm: { resyncMs: number };
}

/** The basis of the last evaluations. */
interface Grounds {
  rules: CompiledRules;
  overrides: string;
  atMonotonicMs: number;
}

/**
 * Keeps the leader's view complete, whichever daemon reconciles a project: it evaluates from its own cached project and the stored
 * records, without reports. Other daemons only forget what is deleted, once the control API confirms it. A daemon on a store of its own
 * has evaluated everything itself.
 */
export function startLeaderRefresh(deps: LeaderRefreshDeps): Running {
  const { clock, rhythm, leaderLease } = deps;
  let grounds: Grounds | undefined;
  let storeId: string | undefined;
  if (leaderLease.isAlone) return { close: async () => {} };

  async function refreshOnce(): Promise<void> {
    // Every daemon reads holds and freezes, before the store can lose them.
    await deps.overrides.refresh(deps.store, clock.now());
    if (!leaderLease.isHeld()) {
      grounds = undefined;
      return;
    }
    const current = groundsNow(deps);
    const isChanged = isOther(grounds, current);
    const lastMs = grounds?.atMonotonicMs ?? Number.NEGATIVE_INFINITY;
    // At a boundary there is better to do.
    const isDue = current.atMonotonicMs - lastMs >= rhythm.resyncMs && !isAtBoundary(deps.fleet, clock.now());
    const isRound = isChanged || isDue;
    const cachedProjects = [...deps.fleet.cachedProjects()].filter((cachedProject) => {
      return isChanged || (isRound && isOfOthers(deps, cachedProject)) || isBehind(deps, cachedProject);
    });
    await pLimit(CONCURRENT_READS).map(cachedProjects, ({ project }) => adoptProject(deps, project.projectId));
    if (isRound) grounds = current;
  }

  async function forgetDeleted(): Promise<void> {
    if (leaderLease.isHeld()) return;
    const before = storeId;
    storeId = await deps.store.storeId();
    const stored = new Set(await deps.store.projectIds());
    // A store that came back empty does not mean that anything was deleted.
    if (storeId !== before || storeId !== (await deps.store.storeId())) return;
    const { fleet } = deps;
    const gone = fleet.projectIds().filter((id) => !stored.has(id) && fleet.evaluatedOf(id).length > 0);
    for (const projectId of gone) {
      if ((await askForProject(deps, projectId)) !== 'gone') continue;
      fleet.forget(projectId);
      const fields = { event: 'ebb.project_forgotten', project: projectId };
      deps.telemetry.log.info(fields, `${projectId} no longer exists, and another daemon has forgotten its records`);
    }
  }

  const rounds = [
    clock.every(CHECK_EVERY_MS, () => deps.runInBackground('leader_refresh', refreshOnce)),
    clock.every(rhythm.resyncMs, () => deps.runInBackground('project_cleanup', forgetDeleted)),
  ];
  return { close: async () => void (await Promise.all(rounds.map((round) => round.close()))) };
}

function groundsNow({ overrides, clock, rules }: LeaderRefreshDeps): Grounds {
  const { holds, freezes } = overrides;
  return { rules: rules.current, overrides: JSON.stringify([holds, freezes]), atMonotonicMs: clock.monotonicMs() };
}

function isOther(before: Grounds | undefined, now: Grounds): boolean {
  return before?.rules !== now.rules || before?.overrides !== now.overrides;
}

/** Another daemon reconciled it last: the cached project lacks what that one has stored since. */
function isOfOthers({ fleet }: LeaderRefreshDeps, { computes }: CachedProject): boolean {
  return computes.some(
    ({ computeId }) => fleet.known(computeId)?.evaluatedCompute !== fleet.evaluatedCompute(computeId),
  );
}

/**
 * Read since it was evaluated, never evaluated, or long past a boundary: while computes of the account wait to be taken over it there is
 * better to do.
 */
function isBehind(
  { fleet, clock }: LeaderRefreshDeps,
  { project, computes, readAtMonotonicMs }: CachedProject,
): boolean {
  const nowMs = clock.now() - PAST_BOUNDARY_MS;
  return computes.some(({ computeId }) => {
    const known = fleet.known(computeId);
    if (!known || known.atMonotonicMs < readAtMonotonicMs) return true;
    const { nextBoundaryMs, decision, ...ahead } = known.evaluatedCompute;
    const dueMs = nextBoundaryMs ?? searchAgainAt(decision.instantMs, ahead);
    return dueMs !== undefined && dueMs <= nowMs && !isAtBoundary(fleet, clock.now(), project.account);
  });
}
