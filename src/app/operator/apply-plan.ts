import pLimit from 'p-limit';
import { hasSettings } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { type FleetPlan, type FleetSituation, planFleet } from '../../domain/evaluate/plan-fleet.ts';
import { groupBy } from '../../domain/grouping.ts';
import { withoutDecided } from '../../domain/overrides/restore.ts';
import { type Action, inWriteOrder, reasonsOf } from '../../domain/plan/plan.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Project } from '../../ports/control-api.ts';
import type { DecidedBy, Store } from '../../ports/store.ts';
import { type ApplyDeps, type ApplyResult, applyAction } from '../apply/apply.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type ReadComputesDeps, readComputes } from '../fleet/read-computes.ts';
import { readGuardStates } from '../guards/stored-states.ts';
import { withProjectLease } from '../leases/locked-project.ts';
import { type FollowDeps, followOperations } from '../operations/follow.ts';
import type { Slots } from '../operations/restart-slots.ts';
import type { Overrides } from '../overrides.ts';

const CONCURRENT_PROJECTS = 8;

/** The longest wait for a project that a daemon reconciles, and the interval of attempts, in real milliseconds. */
const LEASE_WAIT_MS = 20_000;
const LEASE_RETRY_MS = 500;

/** The outcome of a planned change. `skipped`: nothing was sent; `failed`: a request was sent, and failed or was not followed to its end. */
export type AppliedChange = { outcome: 'done' } | { outcome: 'skipped' | 'failed'; message: string };

export interface ApplyPlanDeps extends ApplyDeps, FollowDeps, ReadComputesDeps {
  clock: Clock;
  fleet: Fleet;
  store: Store;
  slots: Slots;
  overrides: Overrides;
}

export interface ApplyPlanOptions {
  deps: ApplyPlanDeps;
  /** The confirmed plan: nothing else is sent. */
  plan: FleetPlan;
  /** The input of the plan. Computes, records, holds, freezes and the states of guards are read again before each write. */
  situation: FleetSituation;
  projects: readonly Project[];
  /** After an abort no further change begins. A change under way is left to the next reconcile. */
  signal: AbortSignal;
  onBegin?: (planned: EvaluatedCompute) => void;
  onEnd?: (planned: EvaluatedCompute, applied: AppliedChange) => void;
}

/**
 * Applies the actions of a plan as a daemon does: lease, pending write, PATCH, record, and operations followed to their end. Higher
 * priorities come first, and raises within a priority. Computes of one project are changed one by one, since the control API refuses changes
 * while an operation runs in the project. Plans again before each write, and sends nothing if the action differs from the confirmed one.
 */
export async function applyPlan(options: ApplyPlanOptions): Promise<Map<EvaluatedCompute, AppliedChange>> {
  const results = new Map<EvaluatedCompute, AppliedChange>();
  prepareFleet(options);
  const inOrder = inWriteOrder(options.plan.computes);
  const urgencyOf = ({ plan: { actions } }: EvaluatedCompute) => `${actions[0]?.priority} ${actions[0]?.raises}`;
  for (const equallyUrgent of groupBy(inOrder, urgencyOf).values()) {
    await pLimit(CONCURRENT_PROJECTS).map(groupBy(equallyUrgent, projectOf).values(), async (ofProject) => {
      for (const planned of ofProject) {
        const applied = await applyToCompute(options, planned);
        results.set(planned, applied);
        options.onEnd?.(planned, applied);
      }
    });
  }
  await dropDecidedRestores(options);
  return results;
}

/** Drops restore requests that policies contradict, as a reconcile does, even if no compute changes. */
async function dropDecidedRestores({ deps, plan, situation, signal }: ApplyPlanOptions): Promise<void> {
  const dropped = plan.computes.filter(({ compute: { computeId }, record }) => {
    const before = situation.records.get(computeId)?.restore;
    return before !== undefined && before !== record.restore;
  });
  for (const [projectId, computes] of groupBy(dropped, projectOf)) {
    if (signal.aborted) return;
    await withProjectLease(deps, projectId, async (lease) => {
      const records = await deps.store.records(projectId);
      for (const { compute, decision } of computes) {
        const stored = records.get(compute.computeId);
        const remaining = stored && withoutDecided(stored, compute, decision);
        if (remaining && remaining !== stored)
          await deps.store.putRecord(projectId, compute.computeId, remaining, lease);
      }
      return true;
    });
  }
}

/** Fills the fleet with the planned computes: limits such as `at_once` are shares of their number. */
function prepareFleet({ deps: { fleet, clock }, projects, plan }: ApplyPlanOptions): void {
  const computes = groupBy(plan.computes, projectOf);
  for (const project of projects) {
    const planned = computes.get(project.projectId) ?? [];
    fleet.list(project);
    const times = { readAtMs: clock.now(), readAtMonotonicMs: clock.monotonicMs() };
    fleet.cache({ project, computes: planned.map(({ compute }) => compute), unreadable: [], ...times });
    for (const one of planned) fleet.putEvaluated(one);
  }
}

function projectOf({ compute }: EvaluatedCompute): string {
  return compute.projectId;
}

async function applyToCompute(options: ApplyPlanOptions, planned: EvaluatedCompute): Promise<AppliedChange> {
  if (options.signal.aborted) return skipped('interrupted before it was begun');
  options.onBegin?.(planned);
  for (const [index, action] of planned.plan.actions.entries()) {
    const written = await writeUnderLease(options, planned, { action, isFirst: index === 0 });
    if (written.outcome !== 'done') return written;
    const ended = await followToTheEnd(options, planned, action);
    if (ended.outcome !== 'done') return ended;
  }
  return { outcome: 'done' };
}

interface Step {
  action: Action;
  /** True for the first action of a compute. Its settings must still be those of the plan. */
  isFirst: boolean;
}

async function writeUnderLease(
  options: ApplyPlanOptions,
  planned: EvaluatedCompute,
  step: Step,
): Promise<AppliedChange> {
  const { deps, signal } = options;
  const { clock } = deps;
  const giveUpMs = clock.monotonicMs() + LEASE_WAIT_MS;
  for (;;) {
    const applied = await withProjectLease(deps, planned.compute.projectId, async (lease) => {
      const again = await planAgain(options, planned);
      if (!('now' in again)) return again;
      const { now, decidedBy } = again;
      const difference = differenceOf(planned, step, now);
      if (difference !== undefined) return skipped(difference);
      const written = await applyAction(deps, lease, now, { decidedBy });
      return written.isOutdated ? undefined : outcomeOf(written);
    });
    if (applied) return applied;
    if (signal.aborted || clock.monotonicMs() > giveUpMs) return skipped('another ebb is busy with the project');
    await clock.sleepUntil(clock.now() + LEASE_RETRY_MS, signal).catch(() => {});
  }
}

/** Plans the compute again, from its present state. Returns the skipped change if that is impossible. */
async function planAgain(
  options: ApplyPlanOptions,
  planned: EvaluatedCompute,
): Promise<{ now: EvaluatedCompute; decidedBy: DecidedBy } | AppliedChange> {
  const { deps, situation } = options;
  const { projectId, computeId } = planned.compute;
  const project = deps.fleet.listed(projectId);
  const read = project && (await readComputes(deps, project, { deadlineMs: RECOVERY.readMs, branchesMaxAgeMs: 0 }));
  if (!read?.ok) return skipped(`it can't be read: ${read?.error.message ?? 'its project is gone'}`);
  const nowMs = deps.clock.now();
  await deps.overrides.refresh(deps.store, nowMs);
  const { holds, freezes, revision } = deps.overrides.snapshot();
  const records = await deps.store.records(projectId);
  const isGuarded = policiesOfKind(situation.policies.set.policies, 'guard').length > 0;
  const guards = isGuarded && { guardStates: await readGuardStates(deps.store) };
  const present = { computes: read.value.computes, records, holds, freezes, ...guards, nowMs };
  const { computes } = planFleet({ ...situation, ...present });
  const now = computes.find(({ compute }) => compute.computeId === computeId);
  // The person has confirmed this plan, whichever policy set the daemons have loaded.
  return now ? { now, decidedBy: { overrides: revision, generation: 'any' } } : skipped('it is gone');
}

/** Returns why the planned action is no longer right; undefined if it still is. */
function differenceOf(planned: EvaluatedCompute, { action, isFirst }: Step, now: EvaluatedCompute): string | undefined {
  const { plan, compute } = now;
  const [next] = plan.actions;
  if (isFirst && !hasSettings(compute, planned.compute)) return 'somebody has changed it since it was planned';
  if (plan.verdict !== 'act') return `it can't be done any more: ${reasonsOf(plan).at(-1)?.message ?? plan.verdict}`;
  if (next?.disconnects === true && !action.disconnects) return 'it has woken up since: it would disconnect clients';
  const isSameKind = next?.kind === action.kind && next.disconnects === action.disconnects;
  return isSameKind && sameFields(next.fields, action.fields) ? undefined : 'something else is wanted by now';
}

function sameFields(a: Action['fields'], b: Action['fields']): boolean {
  return (['minCu', 'maxCu', 'suspendTimeoutSeconds'] as const).every((name) => a[name] === b[name]);
}

function outcomeOf({ result }: ApplyResult): AppliedChange {
  if (!result) return skipped('not sent: a freeze, restarts of the same policy, or a wrong clock prevents it');
  const { outcome, error } = result;
  if (outcome === 'applied') return { outcome: 'done' };
  const reason = error ? `${error.status ?? error.code}: ${error.message}` : outcome;
  return { outcome: 'failed', message: outcome === 'unknown' ? `no answer, so it may be done: ${reason}` : reason };
}

async function followToTheEnd(
  options: ApplyPlanOptions,
  planned: EvaluatedCompute,
  action: Action,
): Promise<AppliedChange> {
  const { deps, signal } = options;
  const { projectId, computeId } = planned.compute;
  try {
    for (;;) {
      const { nextCheckMs } = await followOperations(deps, projectId, signal);
      signal.throwIfAborted();
      if (nextCheckMs === undefined) break;
      await deps.clock.sleepUntil(nextCheckMs, signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return {
      outcome: 'failed',
      message: 'interrupted while it was under way; a daemon, or the next apply, follows it',
    };
  }
  return outcomeIn(await deps.store.records(projectId), computeId, action);
}

function outcomeIn(records: ReadonlyMap<string, ComputeRecord>, computeId: string, { fields }: Action): AppliedChange {
  const failed = Object.values(records.get(computeId)?.failures ?? {}).find(({ desired }) =>
    sameFields({ ...fields, ...desired }, fields),
  );
  return failed ? { outcome: 'failed', message: failed.message } : { outcome: 'done' };
}

function skipped(message: string): AppliedChange {
  return { outcome: 'skipped', message };
}
