/** What a pass may lack: a recent reading, or permits of the rate budget. Both are obtained without the lease, since that may take long. */
import { type EvaluatedCompute, evaluateNow } from '../../domain/evaluate/evaluate.ts';
import { type Action, inWriteOrder } from '../../domain/plan/plan.ts';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, Permit, PermittedCall } from '../../ports/control-api.ts';
import { type AsleepDeps, needsReading } from '../apply/rechecks.ts';
import { type EvaluateDeps, situationOf, subjectsOf } from '../evaluate-project/evaluate.ts';
import { isNameInDoubt } from '../fleet/cached-projects.ts';
import { type CachedProject, type Fleet, FRESH_MS } from '../fleet/fleet.ts';
import { readingsValidFromMs } from '../fleet/known-records.ts';
import type { LockedProject } from '../leases/locked-project.ts';

/** Permits of the rate budget, by API call. */
export type Permits = { [C in PermittedCall]?: Permit | undefined };

/** A reading that a pass has asked for. It is valid if nothing was sent to the project after the pass saw its records. */
export interface RequestedReading {
  records: LockedProject['records'];
  /** A reading that began earlier is too old, milliseconds since the epoch. */
  notBeforeMs: number;
}

export interface MissingPermits {
  kind: 'permits';
  account: string;
  calls: PermittedCall[];
  priority: Priority;
}

export interface MissingReading {
  kind: 'reading';
  priority: Priority;
  requestedReading: RequestedReading;
}

export type Missing = MissingPermits | MissingReading;

export interface RequestedReadingDeps {
  fleet: Fleet;
  clock: Pick<Clock, 'now' | 'monotonicMs'>;
}

/** Returns the reading that a pass asks for when it has seen these records. */
export function requestReading(
  deps: RequestedReadingDeps,
  { records }: Pick<LockedProject, 'records'>,
  projectId: string,
): RequestedReading {
  return { records, notBeforeMs: readingsValidFromMs(deps, { records }, projectId) };
}

/** Returns the cached project if its reading is recent enough to decide by and began after the last change was sent. */
export function usableCachedProject(
  deps: RequestedReadingDeps,
  locked: Pick<LockedProject, 'records'>,
  projectId: string,
  requested: RequestedReading | undefined,
): CachedProject | undefined {
  const { fleet } = deps;
  const known = fleet.cachedProject(projectId);
  if (!known || !fleet.isFresh(projectId)) return undefined;
  if (isNameInDoubt(deps, known.project, locked.records)) return undefined;
  // An unchanged entry in the list of projects extends the life of a reading, but not of one that lags behind an applied change.
  const mayLag = [...locked.records.values()].some(({ lagging }) => lagging !== undefined);
  if (mayLag && fleet.ageMs(projectId) >= FRESH_MS) return undefined;
  const isUnchangedSince = requested !== undefined && sentTimes(requested.records) === sentTimes(locked.records);
  const { notBeforeMs } = isUnchangedSince ? requested : requestReading(deps, locked, projectId);
  // The requested reading may have begun in the millisecond in which the records were seen.
  return known.readAtMs > notBeforeMs || (isUnchangedSince && known.readAtMs === notBeforeMs) ? known : undefined;
}

function sentTimes(records: LockedProject['records']): string {
  return JSON.stringify([...records].map(([computeId, { lastSentAtMs }]) => [computeId, lastSentAtMs]).toSorted());
}

/** Returns the permits that the change still needs; undefined if none is missing. `readsFirst`: see {@link needsReading}. */
export function missingPermits(
  evaluatedCompute: EvaluatedCompute,
  permits: Permits,
  readsFirst: boolean,
): MissingPermits | undefined {
  const [action] = evaluatedCompute.plan.actions;
  if (!action) return undefined;
  const neededCalls: PermittedCall[] = [callOf(action), ...(readsFirst ? ['listComputes' as const] : [])];
  const calls = neededCalls.filter((call) => permits[call]?.isUsed() !== false);
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

/** Waits for all missing permits of the rate budget concurrently. */
export async function getPermits(
  { api }: { api: Pick<ControlApi, 'permit'> },
  { account, calls, priority }: MissingPermits,
  signal: AbortSignal,
): Promise<Permits> {
  const granted = await Promise.all(
    calls.map(async (call) => [call, await api.permit(call, { account, priority, signal })] as const),
  );
  return Object.fromEntries(granted);
}

/** Returns the permits that the most urgent change of a project is likely to need; undefined if no change is expected. */
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
