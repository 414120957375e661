import pLimit from 'p-limit';
import { step } from '../../common/errors.ts';
import { isBoundary } from '../../domain/decide/boundaries.ts';
import { decide } from '../../domain/decide/decide.ts';
import { changesOf } from '../../domain/plan/change.ts';
import { compareRanks, LAST_RANK, rankOf, type WriteRank } from '../../domain/plan/plan.ts';
import { herdInstants } from '../../domain/policy/waves.ts';
import { decidingFacts } from '../../domain/records/compute-record.ts';
import { isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobHandler, JobOutcome } from '../../ports/job-queue.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { EvaluateDeps } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { MAX_LEAD_MS, requestBoundaryReconcile, requestReconcile, type TriggerDeps } from '../triggers.ts';

/** How many triggers are sent to the queue concurrently: enough to keep it busy, few enough to keep their order. */
const CONCURRENT_TRIGGERS = 32;

export interface BoundaryDeps extends TriggerDeps, Pick<EvaluateDeps, 'rules' | 'overrides'> {
  clock: Pick<Clock, 'now' | 'realDelayMs'>;
  fleet: Fleet;
  store: Pick<Store, 'projectIds'>;
  telemetry: Telemetry;
  leaderLease: { isHeld(): boolean };
}

/** How long before the instant projects are read, in milliseconds, so that readings are fresh at the instant. */
const HEAD_START_MS = 5_000;

/** This many projects can be read in the head start and then changed without using up the minute's rate limit. */
const FEW_PROJECTS = 100;

/** If there are more projects, their readings end this long before the instant, in milliseconds: the writes need the minute's rate limit. */
const CROWD_READ_END_MS = 90_000;

/** Interval between computations of the lead, in milliseconds; short, so that a new leader computes the lead in time. */
const RECHECK_LEAD_MS = 5_000;

/** Time for each reading at the rate limit of 700 requests a minute, with room for other requests, in milliseconds. */
const MS_PER_READING = 100;

/**
 * Until this long before the instant, in milliseconds, only the leader sends the triggers, since only the leader knows all affected projects.
 * Another daemon that gets the job puts it back for {@link OFFER_AGAIN_MS}.
 */
const LEADER_ALONE_UNTIL_MS = 2_000;
const OFFER_AGAIN_MS = 250;

/** Handles the job of an instant: a boundary of the fleet, or the wake of one project. */
export function createBoundaries(deps: BoundaryDeps): JobHandler {
  const { clock, leaderLease } = deps;
  /** The projects whose triggers this daemon has sent early, by instant. */
  const sentEarly = new Map<number, ReadonlySet<string>>();

  async function sendTriggers(instantMs: number): Promise<JobOutcome> {
    const remainingMs = clock.realDelayMs(instantMs);
    const leadMs = leadOf(deps, instantMs);
    // Too early: other projects may be affected when the lead begins.
    if (remainingMs > leadMs)
      return { kind: 'again', atMs: Math.min(instantMs - leadMs, clock.now() + RECHECK_LEAD_MS) };
    if (remainingMs > LEADER_ALONE_UNTIL_MS && !leaderLease.isHeld())
      return { kind: 'again', atMs: clock.now() + OFFER_AGAIN_MS };
    const { affected, unknown } = await projectsAt(deps, instantMs);
    const isEarly = clock.now() < instantMs;
    const request = (projectId: string) =>
      isEarly ? requestBoundaryReconcile(deps, projectId, instantMs) : requestReconcile(deps, projectId, { instantMs });
    const alreadySent = sentEarly.get(instantMs);
    // Another daemon may have ended the job of an earlier instant. A job of this daemon that is late still needs what was sent.
    const overMs = clock.now() - MINUTE_MS;
    for (const earlierMs of sentEarly.keys()) if (earlierMs < overMs) sentEarly.delete(earlierMs);
    const projectIds = [...affected, ...unknown].filter((projectId) => alreadySent?.has(projectId) !== true);
    await pLimit(CONCURRENT_TRIGGERS).map(projectIds, (projectId) =>
      step(`project ${projectId}`, () => request(projectId)),
    );
    sentEarly.delete(instantMs);
    if (remainingMs <= HEAD_START_MS) return { kind: 'done' };
    // The job runs again shortly before the instant, since new policies or holds may affect other projects by then.
    sentEarly.set(instantMs, new Set([...(alreadySent ?? []), ...projectIds]));
    return { kind: 'again', atMs: instantMs - HEAD_START_MS };
  }

  return async (job) => {
    const { projectId, instantMs } = job.data;
    if (projectId === undefined && instantMs !== undefined)
      return step(`the boundary at ${isoInstant(instantMs)}`, () => sendTriggers(instantMs));
    if (projectId !== undefined)
      await step(`project ${projectId}`, () =>
        requestReconcile(deps, projectId, instantMs === undefined ? {} : { notBeforeMs: instantMs }),
      );
    else
      deps.telemetry.log.error(
        { event: 'ebb.bad_job', job: `${job.queue}/${job.id}` },
        'a boundary job without an instant',
      );
    return { kind: 'done' };
  };
}

/**
 * Returns how long before the instant projects are read, in milliseconds. The lead is long only if an account's list of projects shows
 * changes: without such a list, a reading older than a few seconds is useless.
 */
function leadOf({ fleet, rules }: BoundaryDeps, instantMs: number): number {
  const { readyWaves } = rules.current.policies;
  const herds = new Map<string, { instants: ReadonlySet<number>; projectIds: Set<string> }>();
  for (const { compute, nextBoundaryMs = Number.NaN } of fleet.evaluatedComputes()) {
    const { account, projectId } = compute;
    if (!fleet.listShowsChanges.get(account)) continue;
    const herd = herds.get(account) ?? {
      instants: herdInstants(readyWaves, account, instantMs),
      projectIds: new Set(),
    };
    herds.set(account, herd);
    if (herd.instants.has(nextBoundaryMs)) herd.projectIds.add(projectId);
  }
  // Each account has its own rate limit, so accounts are read concurrently: the longest lead counts.
  const leads = [...herds.values()].map(({ instants, projectIds }) => {
    if (projectIds.size <= FEW_PROJECTS) return HEAD_START_MS;
    return instantMs - Math.min(...instants) + CROWD_READ_END_MS + projectIds.size * MS_PER_READING;
  });
  return Math.min(MAX_LEAD_MS, Math.max(HEAD_START_MS, ...leads));
}

/**
 * Returns the projects with a compute that has a boundary at this instant, in the order of their writes, and the projects that only other
 * daemons of the group have evaluated, for which that is unknown.
 */
async function projectsAt(deps: BoundaryDeps, instantMs: number): Promise<{ affected: string[]; unknown: string[] }> {
  const { fleet, rules, store, overrides } = deps;
  const { policies } = rules.current;
  const affected = new Map<string, WriteRank>();
  const evaluated = new Set<string>();
  for (const { compute, record } of fleet.evaluatedComputes()) {
    const { projectId } = compute;
    evaluated.add(projectId);
    const input = { policies, compute, ...decidingFacts(record), holds: overrides.holds };
    if (!isBoundary(input, instantMs)) continue;
    const wanted = changesOf(decide({ ...input, instantMs }), compute);
    if (wanted.length === 0 && opensInWaves(deps, compute.account, instantMs)) continue;
    const [rank = LAST_RANK] = wanted.map((change) => rankOf(change, compute)).toSorted(compareRanks);
    const before = affected.get(projectId);
    affected.set(projectId, before && compareRanks(before, rank) <= 0 ? before : rank);
  }
  const projectIds = new Set([...fleet.projectIds(), ...(await store.projectIds())]);
  return {
    affected: [...affected].toSorted(([, a], [, b]) => compareRanks(a, b)).map(([projectId]) => projectId),
    unknown: [...projectIds].filter((projectId) => !evaluated.has(projectId)),
  };
}

/** Returns true if waves raised computes before this opening, and the list shows changes: then a compute that is as wanted needs no request. */
function opensInWaves({ fleet, rules }: BoundaryDeps, account: string, instantMs: number): boolean {
  const { readyWaves } = rules.current.policies;
  const isOpening = readyWaves.some((one) => one.account === account && one.opensAtMs === instantMs);
  return isOpening && fleet.listShowsChanges.get(account) === true;
}
