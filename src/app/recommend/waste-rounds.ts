import pLimit from 'p-limit';
import { backgroundRequests } from '../../domain/rate-budget/limits.ts';
import type { HolidaysOf } from '../../domain/recommend/windows.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, ControlApiError } from '../../ports/control-api.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { RunInBackground, Running } from '../background.ts';
import { isHerdNear } from '../fleet/at-boundary.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import type { Overrides } from '../overrides.ts';
import type { CurrentRules } from '../rules.ts';
import { findInProject } from './find-in-project.ts';
import { forgetFindings, keepFindings, readFindings } from './stored-findings.ts';
import { clearWasteMetrics, showWasteMetrics, totalsOf, type WasteTotals } from './waste-metrics.ts';

/** Each project is looked at once a day; one that could not be read again an hour later. Milliseconds of the clock. */
const EVERY_MS = 86_400_000;
const FAILED_MS = 3_600_000;

/** What is so old is of a project that is no longer listed: nobody looks at it again. */
const FORGOTTEN_MS = 3 * EVERY_MS;

/** Projects that are read at a time: each holds the operations of four weeks in memory. */
const AT_A_TIME = 4;

/** A page of operations, and the branches. */
const REQUESTS_EACH = 2;

export interface WasteRoundsDeps {
  api: Pick<ControlApi, 'operationsFrom' | 'listBranches'>;
  store: Store;
  clock: Clock;
  fleet: Pick<Fleet, 'cachedProjects' | 'listed' | 'evaluatedComputes' | 'boundaryReconciles'>;
  overrides: Pick<Overrides, 'holds'>;
  rules: CurrentRules;
  telemetry: Telemetry;
  leaderLease: { isHeld(): boolean };
  runInBackground: RunInBackground;
  holidaysOf: HolidaysOf;
  /** How often it is looked which projects are due, in real milliseconds. */
  rhythm: { wasteMs: number };
}

/** What the leader knows of a project. */
interface Known {
  /** When it is looked at again, milliseconds since the epoch. */
  dueMs: number;
  totals: WasteTotals;
}

/**
 * The leader finds what would cost less, project by project, each once a day, and keeps it in the store: who leads next goes on from there.
 * It wakes nothing and reads in the background's share of the rate limit. Everything else works without.
 */
export function startWasteRounds(deps: WasteRoundsDeps): Running {
  const { clock, leaderLease, runInBackground, store, telemetry, rhythm } = deps;
  const stop = new AbortController();
  let known: Map<string, Known> | undefined;

  async function round(): Promise<void> {
    if (!leaderLease.isHeld()) {
      if (known) clearWasteMetrics(telemetry);
      known = undefined;
      return;
    }
    known ??= await readKnown(deps);
    const ofLeader = known;
    const errors: ControlApiError[] = [];
    await pLimit(AT_A_TIME).map(dueProjects(deps, ofLeader), async (cached) => {
      if (stop.signal.aborted || !leaderLease.isHeld()) return;
      if (isHerdNear(deps, clock.now(), cached.project.account)) return;
      const error = await refreshFindings(deps, cached, ofLeader, stop.signal);
      if (error) errors.push(error);
    });
    if (stop.signal.aborted) return;
    showWasteMetrics(
      telemetry,
      [...ofLeader.values()].map(({ totals }) => totals),
    );
    const [first] = errors;
    if (first) throw new Error(`findings of ${errors.length} projects: ${first.message}`);
  }

  // A round over a large fleet takes longer than it is to the next.
  let running: Promise<void> | undefined;
  const rounds = clock.every(rhythm.wasteMs, () => {
    running ??= runInBackground('waste', round).finally(() => {
      running = undefined;
    });
    return running;
  });
  return {
    async close() {
      stop.abort(new Error('the daemon stops'));
      await rounds.close();
      await running;
    },
  };

  /** Of what was found before; what nobody looks at any more is forgotten. */
  async function readKnown({ fleet }: WasteRoundsDeps): Promise<Map<string, Known>> {
    const stored = await readFindings(store);
    const isGone = (projectId: string, atMs: number) =>
      fleet.listed(projectId) === undefined && atMs < clock.now() - FORGOTTEN_MS;
    const gone = [...stored].filter(([projectId, { atMs }]) => isGone(projectId, atMs)).map(([projectId]) => projectId);
    await forgetFindings(store, gone);
    for (const projectId of gone) stored.delete(projectId);
    return new Map(
      [...stored].map(([projectId, one]) => [projectId, { dueMs: one.atMs + EVERY_MS, totals: totalsOf(one) }]),
    );
  }
}

/**
 * Those that are due, with computes: those of which nothing is known first, then the oldest. Of each account as many as the background's share
 * of its limit allows until the next round.
 */
function dueProjects({ fleet, clock, rhythm }: WasteRoundsDeps, known: ReadonlyMap<string, Known>): CachedProject[] {
  const most = Math.ceil(backgroundRequests(rhythm.wasteMs) / REQUESTS_EACH);
  const ofAccount = new Map<string, number>();
  const isWithinShare = ({ project: { account } }: CachedProject) => {
    const place = (ofAccount.get(account) ?? 0) + 1;
    ofAccount.set(account, place);
    return place <= most;
  };
  const dueMs = ({ project }: CachedProject) => known.get(project.projectId)?.dueMs ?? 0;
  return [...fleet.cachedProjects()]
    .filter((cached) => cached.computes.length > 0 && dueMs(cached) <= clock.now())
    .sort((a, b) => dueMs(a) - dueMs(b))
    .filter(isWithinShare);
}

async function refreshFindings(
  deps: WasteRoundsDeps,
  { project, computes }: CachedProject,
  known: Map<string, Known>,
  signal: AbortSignal,
): Promise<ControlApiError | undefined> {
  const { clock, store, rules, overrides } = deps;
  const nowMs = clock.now();
  const found = await findInProject({
    ...{ ...deps, project, computes, nowMs, signal },
    ...{ rules: rules.current, holds: overrides.holds, monotonicMs: () => clock.monotonicMs() },
  });
  if (signal.aborted) return undefined;
  const { projectId, account } = project;
  if (!found.ok) {
    known.set(projectId, { totals: [], ...known.get(projectId), dueMs: nowMs + FAILED_MS });
    return found.error.code === 'not_found' ? undefined : found.error;
  }
  const kept = { account, atMs: nowMs, findings: found.value };
  await keepFindings(store, projectId, kept);
  known.set(projectId, { dueMs: nowMs + EVERY_MS, totals: totalsOf(kept) });
  return undefined;
}
