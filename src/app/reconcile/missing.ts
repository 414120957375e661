/**
 * Facts that a reconcile may lack when it holds the lease, and how to get them without the lease: the rate budget may make it wait long.
 */
import { type EvaluatedCompute, evaluateNow } from '../../domain/evaluate/evaluate.ts';
import { type Action, inWriteOrder } from '../../domain/plan/plan.ts';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, Permit, PermittedCall } from '../../ports/control-api.ts';
import { type AsleepDeps, needsReading } from '../apply/rechecks.ts';
import { type EvaluateDeps, situationOf, subjectsOf } from '../evaluate-project/evaluate.ts';
import { type CachedProject, type Fleet, FRESH_MS } from '../fleet/fleet.ts';
import { notBelievedBefore } from '../fleet/known-records.ts';
import type { LockedProject } from '../leases/locked-project.ts';

/** Permits of the rate budget, by the call that they are for. */
export type Permits = { [C in PermittedCall]?: Permit | undefined };

/** The records of a project as they were last read. A later reading of the project is valid as long as nothing was sent since. */
export interface ReadBaseline {
  records: LockedProject['records'];
  /** Readings that began earlier don't count, milliseconds since the epoch. */
  notBeforeMs: number;
}

export interface MissingPermits {
  kind: 'permits';
  account: string;
  calls: PermittedCall[];
  priority: Priority;
}

export type Missing = MissingPermits | { kind: 'reading'; priority: Priority; readBaseline: ReadBaseline };

export interface ReadBaselineDeps {
  fleet: Fleet;
  clock: Pick<Clock, 'now'>;
}

export function readBaselineOf(
  deps: ReadBaselineDeps,
  { records }: Pick<LockedProject, 'records'>,
  projectId: string,
): ReadBaseline {
  return { records, notBeforeMs: notBelievedBefore(deps, { records }, projectId) };
}

/** The cached project, if it is recent enough to write from and was read after the last change was sent. */
export function usableCachedProject(
  deps: ReadBaselineDeps,
  locked: Pick<LockedProject, 'records'>,
  projectId: string,
  before: ReadBaseline | undefined,
): CachedProject | undefined {
  const { fleet } = deps;
  const known = fleet.cachedProject(projectId);
  if (!known || !fleet.isFresh(projectId)) return undefined;
  // A list of projects that shows no change since confirms the reading, but not that it was right.
  const lags = [...locked.records.values()].some(({ lagging }) => lagging !== undefined);
  if (lags && fleet.ageMs(projectId) >= FRESH_MS) return undefined;
  const isSame = before !== undefined && sentTimes(before.records) === sentTimes(locked.records);
  const { notBeforeMs } = isSame ? before : readBaselineOf(deps, locked, projectId);
  // A reading that was asked for after the records were seen may have begun in the same millisecond.
  return known.readAtMs > notBeforeMs || (isSame && known.readAtMs === notBeforeMs) ? known : undefined;
}

function sentTimes(records: LockedProject['records']): string {
  return JSON.stringify([...records].map(([computeId, { lastSentAtMs }]) => [computeId, lastSentAtMs]).toSorted());
}

/** Leave that the change needs and that is not there; undefined if all of it is. `readsFirst`: see {@link needsReading}. */
export function missingPermits(
  evaluatedCompute: EvaluatedCompute,
  permits: Permits,
  readsFirst: boolean,
): MissingPermits | undefined {
  const [action] = evaluatedCompute.plan.actions;
  if (!action) return undefined;
  const needed: PermittedCall[] = [callOf(action), ...(readsFirst ? ['listComputes' as const] : [])];
  const calls = needed.filter((call) => permits[call]?.isUsed() !== false);
  return calls.length === 0
    ? undefined
    : { kind: 'permits', account: evaluatedCompute.compute.account, calls, priority: priorityOf(action) };
}

export function callOf({ kind }: Action): PermittedCall {
  return kind === 'restart' ? 'restartCompute' : 'updateCompute';
}

export function priorityOf({ raises }: Action): Priority {
  return raises ? 'raise' : 'lowering';
}

/** Waits for several permits of the rate budget concurrently. */
export async function getPermits(
  { api }: { api: Pick<ControlApi, 'permit'> },
  { account, calls, priority }: MissingPermits,
  signal: AbortSignal,
): Promise<Permits> {
  const found = await Promise.all(
    calls.map(async (call) => [call, await api.permit(call, { account, priority, signal })] as const),
  );
  return Object.fromEntries(found);
}

/** The permits that the most urgent change of a project is likely to need; undefined if there is none. */
export function expectedPermits(
  deps: AsleepDeps & EvaluateDeps,
  { computes }: CachedProject,
  records: ReadonlyMap<string, ComputeRecord>,
  isCrowded: boolean,
): MissingPermits | undefined {
  const evaluated = subjectsOf(computes, records).map((subject) => {
    const { compute, record } = subject;
    return { compute, record, nextBoundaryMs: undefined, ...evaluateNow(situationOf(deps, subject)) };
  });
  const [first] = inWriteOrder(evaluated);
  return first && missingPermits(first, {}, needsReading(deps, first, isCrowded));
}
