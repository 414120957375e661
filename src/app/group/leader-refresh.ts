import pLimit from 'p-limit';
import { searchAgainAt } from '../../domain/decide/boundaries.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground, Running } from '../background.ts';
import { adoptProject, type EvaluateDeps } from '../evaluate-project/evaluate.ts';
import { isAtBoundary } from '../fleet/at-boundary.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { checkProjectExists } from '../fleet/forget-project.ts';
import type { Overrides } from '../overrides.ts';
import type { CompiledRules } from '../rules.ts';
import type { LeaderLease } from './leader.ts';

/** Interval between checks, in real milliseconds. */
const CHECK_EVERY_MS = 2_000;
const CONCURRENT_READS = 8;

/** This long after a boundary, its computes should have been evaluated, in milliseconds. */
const EVALUATED_AFTER_MS = 10_000;

export interface LeaderRefreshDeps extends EvaluateDeps {
  api: ControlApi;
  store: Store;
  telemetry: Telemetry;
  fleet: Fleet;
  overrides: Overrides;
  leaderLease: LeaderLease;
  runInBackground: RunInBackground;
  /** Interval between full rounds, and between searches for deleted projects, in real milliseconds. */
  rhythm: { resyncMs: number };
}

/** What a round of evaluations was based on, and when the round began. */
interface EvaluationBasis {
  rules: CompiledRules;
  overrides: string;
  atMonotonicMs: number;
}

/**
 * Keeps the leader's view of the fleet complete when other daemons reconcile projects: the leader evaluates these from the cached project and
 * the stored records, without reports. So do the other daemons when policies, holds or freezes have changed, since their pages show the fleet, too;
 * and they forget deleted projects once the control API confirms the deletion. Does nothing for a daemon that has the store for itself.
 */
export function startLeaderRefresh(deps: LeaderRefreshDeps): Running {
  const { clock, rhythm, leaderLease } = deps;
  /** What this daemon last evaluated the whole fleet by. */
  let lastBasis: EvaluationBasis | undefined;
  let wasLeader = false;
  let storeId: string | undefined;
  if (leaderLease.isAlone) return { close: async () => {} };

  async function refreshOnce(): Promise<void> {
    const isLeader = leaderLease.isHeld();
    if (isLeader && !wasLeader) lastBasis = undefined;
    wasLeader = isLeader;
    const current = currentBasis(deps);
    const isChanged = isBasisChanged(lastBasis, current);
    const lastMs = lastBasis?.atMonotonicMs ?? Number.NEGATIVE_INFINITY;
    const isDue = isChanged || (isLeader && current.atMonotonicMs - lastMs >= rhythm.resyncMs);
    // Work at a boundary comes first, but the leader must know what a new set changes.
    const isFullRound = isDue && ((isLeader && isChanged) || !isAtBoundary(deps.fleet, clock.now()));
    const mustAdopt = (cached: CachedProject) =>
      (isFullRound && (isChanged || isReconciledElsewhere(deps, cached))) ||
      (isLeader && needsEvaluation(deps, cached));
    const projects = [...deps.fleet.cachedProjects()].filter(mustAdopt);
    await pLimit(CONCURRENT_READS).map(projects, ({ project }) => adoptProject(deps, project.projectId));
    if (isFullRound) lastBasis = current;
  }

  async function forgetDeleted(): Promise<void> {
    if (leaderLease.isHeld()) return;
    const before = storeId;
    storeId = await deps.store.storeId();
    const stored = new Set(await deps.store.projectIds());
    // If the store came back empty meanwhile, a missing project does not mean a deleted one.
    if (storeId !== before || storeId !== (await deps.store.storeId())) return;
    const { fleet } = deps;
    const isEvaluated = (id: string) =>
      (fleet.cachedProject(id)?.computes ?? []).some(({ computeId }) => fleet.latestEvaluation(computeId));
    const goneIds = fleet.projectIds().filter((id) => !stored.has(id) && isEvaluated(id));
    for (const projectId of goneIds) {
      if ((await checkProjectExists(deps, projectId)) !== 'gone') continue;
      fleet.forget(projectId);
      const fields = { event: 'ebb.project_forgotten', project: projectId };
      deps.telemetry.log.info(fields, `${projectId} no longer exists, and another daemon has forgotten its records`);
    }
  }

  const rounds = [
    // Every daemon reads holds and freezes often, also while it evaluates the fleet, and so that it can restore them if the store loses them.
    clock.every(CHECK_EVERY_MS, () =>
      deps.runInBackground('leader_refresh', () => deps.overrides.refresh(deps.store, clock.now())),
    ),
    clock.every(CHECK_EVERY_MS, () => deps.runInBackground('leader_refresh', refreshOnce)),
    clock.every(rhythm.resyncMs, () => deps.runInBackground('project_cleanup', forgetDeleted)),
  ];
  return { close: async () => void (await Promise.all(rounds.map((round) => round.close()))) };
}

function currentBasis({ overrides, clock, rules }: LeaderRefreshDeps): EvaluationBasis {
  const { holds, freezes } = overrides;
  return { rules: rules.current, overrides: JSON.stringify([holds, freezes]), atMonotonicMs: clock.monotonicMs() };
}

function isBasisChanged(before: EvaluationBasis | undefined, now: EvaluationBasis): boolean {
  return before?.rules !== now.rules || before?.overrides !== now.overrides;
}

/** Returns true if the latest evaluation of a compute is not this daemon's own. */
function isReconciledElsewhere({ fleet }: LeaderRefreshDeps, { computes }: CachedProject): boolean {
  return computes.some(({ computeId }) => fleet.latestEvaluation(computeId) !== fleet.ownEvaluation(computeId));
}

/** Returns true if a compute was read after its evaluation, or if its boundary has passed unhandled for ten seconds. */
function needsEvaluation(
  { fleet, clock }: LeaderRefreshDeps,
  { project, computes, readAtMonotonicMs }: CachedProject,
): boolean {
  const overdueMs = clock.now() - EVALUATED_AFTER_MS;
  return computes.some(({ computeId }) => {
    const latest = fleet.latestEvaluation(computeId);
    if (!latest || fleet.evaluatedAtMonotonicMs(computeId) < readAtMonotonicMs) return true;
    const dueMs = latest.nextBoundaryMs ?? searchAgainAt(latest.decision.instantMs, latest);
    return dueMs !== undefined && dueMs <= overdueMs && !isAtBoundary(fleet, clock.now(), { account: project.account });
  });
}
