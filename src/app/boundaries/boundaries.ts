import pLimit from 'p-limit';
import { step } from '../../common/errors.ts';
import { isBoundary } from '../../domain/decide/boundaries.ts';
import { decide } from '../../domain/decide/decide.ts';
import { changesOf } from '../../domain/plan/change.ts';
import { compareRanks, LAST_RANK, rankOf, type WriteRank } from '../../domain/plan/plan.ts';
import { herdInstants } from '../../domain/policy/waves.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Job, JobHandler, JobOutcome } from '../../ports/job-queue.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import type { EvaluateDeps } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import {
  LONGEST_LEAD_MS,
  requestBoundaryReconcile,
  requestReconcile,
  requestWoken,
  type TriggerDeps,
} from '../triggers.ts';

/** Triggers on their way to the queue at once: enough to keep it busy, and still in their order. */
const CONCURRENT_TRIGGERS = 32;

export interface BoundaryDeps extends TriggerDeps, Pick<EvaluateDeps, 'rules' | 'overrides'> {
  clock: Pick<Clock, 'now' | 'realDelayMs'>;
  fleet: Fleet;
  store: Pick<Store, 'projectIds'>;
  telemetry: Telemetry;
  leaderLease: { isHeld(): boolean };
}

/** Head start for reading a boundary's projects, in milliseconds, so that readings are fresh at the instant. */
const HEAD_START_MS = 5_000;

/** This many projects can be read in the head start, and changed, without the full minute of the rate limit. */
const FEW = 100;

/** More are read so early that their reading is over a minute before the instant, which needs the minute's limit for itself. */
const QUIET_MS = 90_000;

/** Between two checks of how long a boundary's projects need, in milliseconds: the leader, which knows them all, is to have one in time. */
const CHECK_AGAIN_MS = 5_000;

/** At the rate limit of 700 requests a minute, with room for other requests. Milliseconds. */
const EACH_READING_MS = 100;

/**
 * The leader knows the affected projects. Another daemon knows only those that it has reconciled, and would have to read all the rest:
 * until this long before the instant it leaves them to the leader, and offers them again after {@link OFFER_AGAIN_MS}. Milliseconds.
 */
const LEFT_TO_LEADER_MS = 2_000;
const OFFER_AGAIN_MS = 250;

/** Handles an instant: a boundary of the fleet, or the wake of a single project. */
export function createBoundaries(deps: BoundaryDeps): JobHandler {
  const { clock, leaderLease } = deps;
  /** By instant, the projects whose triggers this daemon has sent early. */
  const sent = new Map<number, ReadonlySet<string>>();

  async function sendTriggers(instantMs: number): Promise<JobOutcome> {
    const leftMs = clock.realDelayMs(instantMs);
    const leadMs = leadOf(deps, instantMs);
    // More may be affected at that time, or come to be known.
    if (leftMs > leadMs) return { kind: 'again', atMs: Math.min(instantMs - leadMs, clock.now() + CHECK_AGAIN_MS) };
    if (leftMs > LEFT_TO_LEADER_MS && !leaderLease.isHeld())
      return { kind: 'again', atMs: clock.now() + OFFER_AGAIN_MS };
    const { affected, unknown } = await projectsAt(deps, instantMs);
    const request = clock.now() < instantMs ? requestBoundaryReconcile : requestReconcile;
    const known = sent.get(instantMs);
    const projectIds = [...affected, ...unknown].filter((projectId) => known?.has(projectId) !== true);
    await pLimit(CONCURRENT_TRIGGERS).map(projectIds, (projectId) =>
      step(`project ${projectId}`, () => request(deps, projectId, instantMs)),
    );
    sent.delete(instantMs);
    if (leftMs <= HEAD_START_MS) return { kind: 'done' };
    // Others may be affected at that time, by other policies or holds.
    sent.set(instantMs, new Set([...(known ?? []), ...projectIds]));
    return { kind: 'again', atMs: instantMs - HEAD_START_MS };
  }

  return async (job) => {
    const { projectId, instantMs } = job.data;
    if (projectId !== undefined) await step(`project ${projectId}`, () => requestWoken(deps, projectId, instantMs));
    else if (instantMs !== undefined) {
      return step(`the boundary at ${isoInstant(instantMs)}`, () => sendTriggers(instantMs));
    } else
      deps.telemetry.log.error({ event: 'ebb.bad_job', job: describeJob(job) }, 'a boundary job without an instant');
    return { kind: 'done' };
  };
}

/**
 * Lead before the instant at which projects are read, in milliseconds. A reading older than a few seconds is only usable where the list of
 * projects shows changes.
 */
function leadOf({ fleet, rules }: BoundaryDeps, instantMs: number): number {
  const { readyWaves } = rules.current.policies;
  const early = new Map<string, { instants: ReadonlySet<number>; projectIds: Set<string> }>();
  for (const { compute, nextBoundaryMs = Number.NaN } of fleet.evaluatedComputes()) {
    const { account, projectId } = compute;
    if (!fleet.listShowsChanges.get(account)) continue;
    const herd = early.get(account) ?? {
      instants: herdInstants(readyWaves, account, instantMs),
      projectIds: new Set(),
    };
    early.set(account, herd);
    if (herd.instants.has(nextBoundaryMs)) herd.projectIds.add(projectId);
  }
  // Each account has a limit of its own.
  const leads = [...early.values()].map(({ instants, projectIds }) => {
    if (projectIds.size <= FEW) return HEAD_START_MS;
    return instantMs - Math.min(...instants) + QUIET_MS + projectIds.size * EACH_READING_MS;
  });
  return Math.min(LONGEST_LEAD_MS, Math.max(HEAD_START_MS, ...leads));
}

/**
 * The projects of which a compute has a boundary at this instant, in the order in which they are to be written to; and those
 * that only other daemons of the group have looked at, for which this one can't say.
 */
async function projectsAt(deps: BoundaryDeps, instantMs: number): Promise<{ affected: string[]; unknown: string[] }> {
  const { fleet, rules, store, overrides } = deps;
  const { policies } = rules.current;
  const affected = new Map<string, WriteRank>();
  const evaluated = new Set<string>();
  for (const { compute, record } of fleet.evaluatedComputes()) {
    const { projectId } = compute;
    evaluated.add(projectId);
    const { baseline, trials } = record;
    const input = { policies, compute, baseline, trials, holds: overrides.holds };
    if (!isBoundary(input, instantMs)) continue;
    const wanted = changesOf(decide({ ...input, instantMs }), compute);
    if (wanted.length === 0 && isOpeningOfHerd(deps, compute.account, instantMs)) continue;
    const [rank = LAST_RANK] = wanted.map((change) => rankOf(change, compute)).toSorted(compareRanks);
    const before = affected.get(projectId);
    affected.set(projectId, before && compareRanks(before, rank) <= 0 ? before : rank);
  }
  const known = new Set([...fleet.projectIds(), ...(await store.projectIds())]);
  return {
    affected: [...affected].toSorted(([, a], [, b]) => compareRanks(a, b)).map(([projectId]) => projectId),
    unknown: [...known].filter((projectId) => !evaluated.has(projectId)),
  };
}

/** True where windows open for which computes were raised in waves before: one that is as it should be costs no request, if the list shows changes. */
function isOpeningOfHerd({ fleet, rules }: BoundaryDeps, account: string, instantMs: number): boolean {
  const { readyWaves } = rules.current.policies;
  const isOpening = readyWaves.some((one) => one.account === account && one.opensAtMs === instantMs);
  return isOpening && fleet.listShowsChanges.get(account) === true;
}

function describeJob({ queue, id }: Job): string {
  return `${queue}/${id}`;
}
