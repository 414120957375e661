/**
 * The prerequisites of a pass: that this daemon may decide, a recent reading, and permits of the rate budget. Since reading and permits may take
 * long, they are obtained without the lease.
 */
import { type EvaluatedCompute, evaluateNow } from '../../domain/evaluate/evaluate.ts';
import { inWriteOrder } from '../../domain/plan/plan.ts';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi, Permit, PermittedCall } from '../../ports/control-api.ts';
import { needsReading, type RecheckDeps } from '../apply/rechecks.ts';
import { situationOf, subjectsOf } from '../evaluate-project/evaluate.ts';
import { isNameInDoubt } from '../fleet/cached-projects.ts';
import { type CachedProject, type Fleet, FRESH_MS } from '../fleet/fleet.ts';
import { includesLastWrites } from '../fleet/stored-readings.ts';
import type { StoreClock } from '../group/clock-skew.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import type { LockedProject } from '../leases/locked-project.ts';
import { requestReconcile, type TriggerDeps, wakeAt } from '../triggers.ts';

export interface MayDecideDeps extends TriggerDeps {
  clock: Pick<Clock, 'now'>;
  storeClock: Pick<StoreClock, 'excessiveOffsetMs'>;
  storeWatch: Pick<StoreWatch, 'waitMs'>;
}

/** Returns true if this daemon may decide now. Otherwise requests another reconcile and returns false. */
export async function mayDecide(deps: MayDecideDeps, projectId: string): Promise<boolean> {
  // With a wrong clock, a change without an answer could count as lost while it may still take effect.
  if ((await deps.storeClock.excessiveOffsetMs()) !== undefined) {
    await requestReconcile(deps, projectId);
    return false;
  }
  // After a loss of the store, a change by a daemon that has not written it back yet would look like a person's.
  const waitMs = deps.storeWatch.waitMs();
  if (waitMs > 0) await wakeAt(deps, projectId, deps.clock.now() + waitMs);
  return waitMs === 0;
}

export type Permits = { [C in PermittedCall]?: Permit | undefined };

/** A reading that a pass has asked for. The next pass may use it if nothing was sent to the project after these records were read. */
export interface RequestedReading {
  records: LockedProject['records'];
  /** A reading that began before this instant is too old; milliseconds since the epoch. */
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

type Records = Pick<LockedProject, 'records'>;

/** Returns the request for a reading, by a pass that has read these records. */
export function requestReading(
  deps: { fleet: Fleet; clock: Pick<Clock, 'now'> },
  { records }: Records,
  projectId: string,
): RequestedReading {
  const notBeforeMs = mayShowEndedOperation(deps, { records }, projectId)
    ? deps.clock.now()
    : readingsValidFromMs(deps, { records }, projectId);
  return { records, notBeforeMs };
}

/**
 * Returns true if the cached reading shows a running operation, but no record has an open one: another daemon may have followed the operation
 * to its end, and requested this reconcile. With the old reading, changes would wait for that operation until the next resync round.
 */
export function mayShowEndedOperation({ fleet }: { fleet: Fleet }, { records }: Records, projectId: string): boolean {
  const isRunning = fleet.cachedProject(projectId)?.computes.some(({ pendingState }) => pendingState !== undefined);
  return isRunning === true && [...records.values()].every(({ openOperations }) => openOperations.length === 0);
}

/**
 * Returns the instant from which readings are valid, milliseconds since the epoch: earlier ones may lack a change that was sent. If this daemon
 * may not have sent the last change itself, the instant is now, since the sender's clock may differ. If the last change got no answer, and its
 * grace period is over, the instant is the end of that period at the earliest.
 */
export function readingsValidFromMs(
  { fleet, clock }: { fleet: Pick<Fleet, 'ownEvaluations'>; clock: Pick<Clock, 'now'> },
  { records }: Records,
  projectId: string,
): number {
  const nowMs = clock.now();
  const ownRecords = new Map(fleet.ownEvaluations(projectId).map(({ compute, record }) => [compute.computeId, record]));
  const computeIds = [...new Set([...records.keys(), ...ownRecords.keys()])];
  const listed = computeIds.filter((computeId) => records.get(computeId)?.absentSinceMs === undefined);
  const instants = listed.map((computeId) => {
    const stored = records.get(computeId);
    const sentAtMs = stored?.lastSentAtMs ?? 0;
    const graceEndMs = stored?.intent ? stored.intent.atMs + RECOVERY.answerGraceMs : 0;
    const isOurs = stored !== undefined && sentAtMs === (ownRecords.get(computeId)?.lastSentAtMs ?? 0);
    if (!isOurs) return nowMs;
    // An instant in the future, by a clock that was ahead, counts as now.
    const sentBeforeMs = Math.min(sentAtMs, nowMs);
    return graceEndMs <= nowMs ? Math.max(graceEndMs, sentBeforeMs) : sentBeforeMs;
  });
  return Math.max(0, ...instants);
}

/**
 * Returns true if many projects share the boundary, and another job or daemon has changed each compute of this project since. That process
 * reads the project again: a reading here would take a request from another project's change.
 */
export function wasChangedByOthers(
  { requestedReading: { records } }: MissingReading,
  { boundaryMs = Number.POSITIVE_INFINITY, isCrowded = false }: { boundaryMs: number | undefined; isCrowded?: boolean },
): boolean {
  const present = [...records.values()].filter(({ absentSinceMs }) => absentSinceMs === undefined);
  const isChanged = ({ intent, lastSentAtMs = 0 }: ComputeRecord) => !intent && lastSentAtMs >= boundaryMs;
  return isCrowded && present.length > 0 && present.every(isChanged);
}

/** Returns the cached project if its reading is recent enough to decide by, and includes the last change that was sent. */
export function usableCachedProject(
  deps: { fleet: Fleet; clock: Pick<Clock, 'now' | 'monotonicMs'> },
  locked: Records,
  projectId: string,
  requested: RequestedReading | undefined,
): CachedProject | undefined {
  const { fleet } = deps;
  const cached = fleet.cachedProject(projectId);
  if (!cached || !(fleet.isFresh(projectId) || fleet.isRecent(projectId))) return undefined;
  if (isNameInDoubt(deps, cached.project, locked.records)) return undefined;
  // An unchanged entry in the list of projects extends the life of a reading, but not of one that lags behind an applied change.
  const mayLag = [...locked.records.values()].some(({ lagging }) => lagging !== undefined);
  if (mayLag && fleet.ageMs(projectId) >= FRESH_MS) return undefined;
  if (!mayShowEndedOperation(deps, locked, projectId) && includesWrites(deps, cached, locked)) return cached;
  const isUnchangedSince = requested !== undefined && sentTimes(requested.records) === sentTimes(locked.records);
  const { notBeforeMs } = isUnchangedSince ? requested : requestReading(deps, locked, projectId);
  if (cached.readAtMs > notBeforeMs) return cached;
  // The requested reading may have begun in the same millisecond as the request; one that began in that of a write lacks the write.
  const isOfWrite = [...locked.records.values()].some(({ lastSentAtMs }) => lastSentAtMs === cached.readAtMs);
  return isUnchangedSince && cached.readAtMs === notBeforeMs && !isOfWrite ? cached : undefined;
}

/** Returns true if a reading includes the last recorded write of each compute, and this daemon has sent no later one. */
export function includesWrites(
  { fleet }: { fleet: Pick<Fleet, 'ownEvaluations'> },
  cached: CachedProject,
  { records }: Records,
): boolean {
  const isStored = ({ compute: { computeId }, record }: EvaluatedCompute) =>
    (record.lastSentAtMs ?? 0) <= (records.get(computeId)?.lastSentAtMs ?? 0);
  return includesLastWrites(cached, records) && fleet.ownEvaluations(cached.project.projectId).every(isStored);
}

function sentTimes(records: LockedProject['records']): string {
  return JSON.stringify([...records].map(([computeId, { lastSentAtMs }]) => [computeId, lastSentAtMs]).toSorted());
}

/** Returns the permits that the compute's next change still needs; undefined if none is missing. `readsFirst`: see {@link needsReading}. */
export function missingPermits(
  evaluatedCompute: EvaluatedCompute,
  permits: Permits,
  readsFirst: boolean,
): MissingPermits | undefined {
  const [action] = evaluatedCompute.plan.actions;
  if (!action) return undefined;
  const needed: PermittedCall[] = [action.kind === 'restart' ? 'restartCompute' : 'updateCompute'];
  if (readsFirst) needed.push('listComputes');
  const calls = needed.filter((call) => permits[call]?.isUsed() !== false);
  if (calls.length === 0) return undefined;
  const priority = action.raises ? 'raise' : 'lowering';
  return { kind: 'permits', account: evaluatedCompute.compute.account, calls, priority };
}

/** Waits until all of the missing permits are granted. */
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
  deps: RecheckDeps,
  { computes }: CachedProject,
  records: ReadonlyMap<string, ComputeRecord>,
  isCrowded: boolean,
): MissingPermits | undefined {
  const evaluated = subjectsOf(computes, records).map((subject) => {
    const { compute, record } = subject;
    return {
      compute,
      record,
      nextBoundaryMs: undefined,
      nextChangeMs: undefined,
      ...evaluateNow(situationOf(deps, subject)),
    };
  });
  const [first] = inWriteOrder(evaluated);
  return first && missingPermits(first, {}, needsReading(deps, first, isCrowded));
}
