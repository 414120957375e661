/** Rules about records: they say only what has happened. What there is to say of a compute is remembered by itself. */

import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { bookOf, changesOf, computeNow, SECOND_MS, wasForgotten } from './book.ts';
import type { FaultKind } from './plan.ts';
import { isDoubted, type World } from './world.ts';

/** Clocks of daemons that write, and of the platform, are less apart; milliseconds. */
const APART_MS = 5 * SECOND_MS;

/** Called when a request for a change, or what became of it, may be unknown to a daemon, or was refused. */
export function noteUnclear(world: World, computeId: string | undefined): void {
  if (computeId !== undefined) bookOf(world).unclear.set(computeId, world.time.now());
}

/** Called when a daemon dies: what it was about to write is unknown. */
export function notePendingUnclear(world: World): void {
  for (const computeId of bookOf(world).pending.keys()) noteUnclear(world, computeId);
}

function hadFault({ faults }: World, ...kinds: readonly FaultKind[]): boolean {
  return faults.some(({ kind }) => kinds.includes(kind));
}

/** Called when a record is stored. */
export function checkTold(world: World, who: string, computeId: string, record: ComputeRecord): void {
  if (wasForgotten(world, computeId)) return;
  const compute = computeNow(world, computeId);
  const { people } = world;
  const { effects } = bookOf(world);
  const nowMs = world.time.now();
  const isChanged = changesOf(world, computeId).length > 0;
  const isUnclear = bookOf(world).unclear.has(computeId) || hadFault(world, 'api_not_applied', 'api_late');
  // Where clocks differ, a reading from just before another daemon's change may count as one after it: it is read again.
  const isOld = hadFault(world, 'api_stale', 'clock_off');
  const isHidden = hadFault(world, 'api_hides_project', 'api_duplicates', 'api_stale') || !compute;
  const isOwn = (one: { computeId: string }) => one.computeId === computeId;
  const happened: Partial<Record<keyof ComputeRecord, boolean>> = {
    // A reading may have begun in the moment of a change.
    lagging: isOld || isChanged || isUnclear || effects.some((one) => isOwn(one) && one.atMs > nowMs - SECOND_MS),
    failures: isUnclear,
    lostWrites: isUnclear,
    oneFieldGroupAtATime: isUnclear,
    manual: isChanged || isUnclear,
    baselineCandidates: isChanged || isUnclear,
    reversals: isChanged || isUnclear,
    absentSinceMs: isHidden,
    restore: people.restores.some(isOwn),
    renamed: people.renames.some(({ projectId }) => projectId === (compute?.projectId ?? projectId)),
    lastDisruption: bookOf(world).arrived.some(isOwn) || isUnclear,
  };
  world.reach('record checked');
  for (const [part, isPossible] of Object.entries(happened)) {
    const said: unknown = Reflect.get(record, part);
    if (said !== undefined && !isPossible && JSON.stringify(said) !== '{}')
      world.violate('records say only what has happened', `${who} ${computeId}: ${part} ${JSON.stringify(said)}`);
  }
  checkOperations(world, who, computeId, record);
  checkFirst(world, who, computeId, record);
}

/** Operations that a record has are the compute's own, and run since the change that it names. */
function checkOperations(world: World, who: string, computeId: string, { openOperations }: ComputeRecord): void {
  const { projects } = world.platform.platform.peek();
  const all = projects.get(computeNow(world, computeId)?.projectId ?? '')?.operations;
  if (!all) return;
  for (const { operationId, startedAtMs } of openOperations) {
    const operation = all.findLast(({ id }) => id === operationId);
    const ageMs = operation && !hadFault(world, 'clock_off') ? startedAtMs - operation.createdAtMicros / 1000 : 0;
    world.reach('operation in a record checked');
    const isOwn = operation?.computeId === computeId && ageMs < 30 * SECOND_MS + APART_MS;
    if (!isOwn) world.violate('records have only their own operations', `${who} ${computeId}: ${operationId}`);
  }
  const ids = new Set(openOperations.map(({ operationId }) => operationId));
  if (ids.size < openOperations.length)
    world.violate('records have only their own operations', `${who} ${computeId}: one twice`);
}

/** What was first stored of a compute stays. */
function checkFirst(world: World, who: string, computeId: string, record: ComputeRecord): void {
  const { first } = bookOf(world);
  const { firstSeenAtMs, enforcedSinceMs, lastDecidedAtMs } = record;
  const before = first.get(computeId);
  first.set(computeId, { firstSeenAtMs, enforcedSinceMs });
  const isKept =
    before?.firstSeenAtMs === firstSeenAtMs && (before.enforcedSinceMs ?? enforcedSinceMs) === enforcedSinceMs;
  if (before && !isKept && !hadFault(world, 'clock_off'))
    world.violate('records keep since when they are', `${who} ${computeId}: ${firstSeenAtMs}, ${enforcedSinceMs}`);
  if (lastDecidedAtMs > world.time.now() + APART_MS && !hadFault(world, 'clock_off'))
    world.violate('records keep since when they are', `${who} ${computeId}: decided at ${lastDecidedAtMs}`);
}

/** A change that nothing has disturbed for so long before is noted as it was made, in milliseconds. */
const UNDISTURBED_MS = 60 * SECOND_MS;

const MISLEADING: ReadonlySet<FaultKind> = new Set([
  'api_not_applied',
  'api_late',
  'api_stale',
  'clock_off',
  'stall',
  'store_slow',
  'store_down',
  'store_unanswered',
]);

/** True if a daemon may rightly believe something else of a compute than what became of it. */
function isMisled(world: World, computeId: string, sinceMs: number): boolean {
  const isLate = ({ atMs }: { atMs: number }) => atMs > sinceMs;
  return (
    world.faults.some(({ kind, untilMs }) => MISLEADING.has(kind) && untilMs > sinceMs) ||
    changesOf(world, computeId).some(isLate) ||
    (bookOf(world).unclear.get(computeId) ?? 0) > sinceMs ||
    wasForgotten(world, computeId, sinceMs) ||
    isDoubted(world, computeId)
  );
}

/** In a quiet time: what a record says of the last change is what became of it. */
export function checkLast(world: World, computeId: string, record: ComputeRecord): void {
  const { effects, arrived } = bookOf(world);
  const isOwn = (one: { computeId: string }) => one.computeId === computeId;
  const [last, sent] = [effects.findLast(isOwn), arrived.findLast(isOwn)];
  if (!last || !sent || isMisled(world, computeId, last.atMs - UNDISTURBED_MS)) return;
  world.reach('last change in a record checked');
  const { lastApplied, lastSentAtMs, lastDisruption, lastChanges = {} } = record;
  const isNear = (atMs = 0) => Math.abs(atMs - last.atMs) < APART_MS;
  const isSize = last.before.minCu !== last.after.minCu || last.before.maxCu !== last.after.maxCu;
  const isRestart = isSize && (last.wasAwake ?? isNear(lastDisruption?.atMs));
  const said = [
    Object.entries(sent.asked).every(([field, value]) => Reflect.get(lastApplied, field) === value),
    Math.abs((lastSentAtMs ?? 0) - sent.atMs) < APART_MS,
    isNear((isSize ? lastChanges.size : lastChanges.suspend_timeout)?.answeredAtMs),
    !isSize || isRestart === isNear(lastDisruption?.atMs),
  ];
  const what = JSON.stringify({ lastApplied, lastSentAtMs, lastDisruption, lastChanges });
  if (said.includes(false)) world.violate('records say what was last done', `${computeId}: ${said.join()}: ${what}`);
}
