/** Rules for the end: after minutes in which nothing happened, everything must be as it should. */

import type { ComputeSettings } from '../../src/domain/compute/compute.ts';
import { gatesOf } from '../../src/domain/plan/plan.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { Compute as EmulatedCompute } from '../../src/emulator/world/entities.ts';
import {
  type Arrival,
  bookOf,
  changesOf,
  computeNow,
  filesOfGroup,
  freezesNow,
  holdsNow,
  namesOf,
  SECOND_MS,
  SEEN_MS,
  wasForgotten,
} from './book.ts';
import { checkCalm } from './calm.ts';
import type { SimDaemon } from './daemon.ts';
import { checkHarms, isSmaller, mayHoldBack, wantedWithFloors } from './guards.ts';
import { edgesOf, FIELDS, type Field, policiesFor, type Wanted, wanted } from './oracle.ts';
import type { SimPlan } from './plan.ts';
import { type SimFiles, TEAM } from './policies.ts';
import { checkLast } from './records.ts';
import { CALM_MS, checkSlots, checkThrift } from './thrift.ts';
import { filesNow, isDoubted, type World } from './world.ts';

/** What is due is done within this time, in milliseconds: a round of the resync loop and the work itself. */
const DONE_MS = 75 * SECOND_MS;

/**
 * Once nothing has happened for long, what is due at an instant is done within this time, in milliseconds, without a round of the resync
 * loop: first the work itself, then the operations of one compute after the other.
 */
const PROMPT_MS = 12 * SECOND_MS;
const OPERATION_MS = 7 * SECOND_MS;

/** A daemon that is killed before a call of its store is killed so late at most, in milliseconds. */
const KILLED_AT_MS = 8 * SECOND_MS;

/** What happens so near a boundary may delay what is due, in milliseconds. */
const MET_MS = 30 * SECOND_MS;

/** A boundary is met so closely, in milliseconds. */
const AT_ONCE_MS = SECOND_MS;

/** An awake compute is not changed if that is undone within this time, in milliseconds. */
const SOON_MS = 120 * SECOND_MS;

/** That a compute has gone to sleep is known within this time, in milliseconds. */
const ASLEEP_MS = 150 * SECOND_MS;

export async function checkQuiet(world: World, daemons: readonly SimDaemon[]): Promise<void> {
  const live = daemons.filter(({ life, parts }) => !life.isKilled && parts);
  if (live.length === 0) return world.violate('daemons run', 'no daemon runs after a quiet time');
  const files = filesNow(world);
  if (!files) return;
  const agreed = await filesOfGroup(world);
  if (JSON.stringify(agreed) !== JSON.stringify(files)) {
    const which = typeof agreed === 'object' ? 'older' : (agreed ?? 'unknown');
    return world.violate('the group agrees on the files', `the set of the store is ${which}`);
  }
  await checkComputes(world, files);
  await checkHolds(world);
  await checkAudit(world);
  checkHarms(world, files);
  checkThrift(world, live);
  await checkSlots(world, files);
  await checkCalm(world, live, files);
  for (const { parts } of live) {
    for (const { plan } of parts?.fleet.evaluatedComputes() ?? []) {
      for (const code of gatesOf(plan)) world.reach(`gate ${code}`);
    }
  }
}

async function checkComputes(world: World, files: SimFiles): Promise<void> {
  for (const compute of [...world.platform.platform.world().computes.values()]) {
    const record = (await world.store.current.records(compute.projectId)).get(compute.id);
    checkDone(world, compute, { files, record });
    if (record) checkSettled(world, compute.id, record);
    if (record) checkLast(world, compute.id, record);
  }
}

/** What was acknowledged survives, unless the store lost it before any daemon could have read it. */
async function checkHolds(world: World): Promise<void> {
  const nowMs = world.time.now();
  const stored = new Set((await world.store.current.holds(nowMs)).map(({ id }) => id));
  for (const { id, computeId, endedAtMs, expiresAtMs, isReleased } of world.people.holds) {
    if (isReleased && !isDoubted(world, computeId)) {
      world.reach('released hold checked');
      if (stored.has(id)) world.violate('what was released stays so', `hold ${id} is back`);
    }
    if (endedAtMs <= nowMs || expiresAtMs <= nowMs) continue;
    world.reach('hold checked');
    if (!stored.has(id)) world.violate('what was acknowledged survives', `hold ${id} is gone`);
  }
}

/** More than a simulation has. */
const MOST_WRITES = 10_000;

/** Each request that has reached the platform is in the audit with what it asked for, whoever has stored what became of it. */
async function checkAudit(world: World): Promise<void> {
  const { arrived } = bookOf(world);
  const query = { sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: MOST_WRITES };
  const { entries } = await world.store.current.audit(query);
  // Of a request without an answer there is a second entry, once it is known what became of it.
  const noted = new Map(entries.toSorted((a, b) => a.atMs - b.atMs).map((entry) => [entry.requestId, entry]));
  for (const arrival of arrived) {
    const { requestId, computeId, who, asked, isRestart } = arrival;
    if (!computeNow(world, computeId) || wasForgotten(world, computeId)) continue;
    world.reach('audit checked');
    const entry = noted.get(requestId);
    const count = entries.filter((one) => one.requestId === requestId).length;
    if (!entry || count > 2) world.violate('each write is in the audit', `${who}: ${count} times`);
    if (!entry) continue;
    checkOutcome(world, arrival, entry);
    if ((entry.kind === 'restart') !== isRestart)
      world.violate('the audit says what was written', `${who}: ${entry.kind}`);
    const isSame = Object.entries(asked).every(([field, value]) => Reflect.get(entry.to ?? {}, field) === value);
    if (!isSame) world.violate('the audit says what was written', `${who}: ${JSON.stringify(entry.to)}`);
  }
}

/** Troubles with which ebb may rightly believe something else of a write than what became of it. */
const MISLEADING: ReadonlySet<string> = new Set(['api_stale', 'api_not_applied', 'api_late', 'clock_off']);

/** Where nothing misleads, the audit says what was there before, and if the write took effect. */
function checkOutcome(world: World, { computeId, who, asked, before, isDone }: Arrival, entry: HistoryEntry): void {
  const isMisled = world.faults.some(({ kind }) => MISLEADING.has(kind)) || changesOf(world, computeId).length > 0;
  const message = entry.reasons.at(-1)?.message ?? '';
  if (isMisled || isDone === undefined || /^(no answer came, so|the answer does not say) /.test(message)) return;
  world.reach('outcome in the audit checked');
  const isSaid = !message.startsWith('not changed') && !message.endsWith('did not take effect');
  if (isSaid !== isDone) world.violate('the audit says what became of a write', `${who}: ${message}`);
  // 0 is the platform's default.
  const was: ComputeSettings = { ...before, suspendTimeoutSeconds: before.suspendTimeoutSeconds || 300 };
  const isBefore = Object.keys(asked).every(
    (field) => Reflect.get(entry.from ?? was, field) === Reflect.get(was, field),
  );
  if (!isBefore) world.violate('the audit says what was there before', `${who}: ${JSON.stringify(entry.from)}`);
}

/** What a write has started has ended within this time, in milliseconds. */
const ENDED_MS = 120 * SECOND_MS;

/** In a quiet time nothing stays open: neither a write, nor an operation that it has started. */
function checkSettled(world: World, computeId: string, { intent, openOperations }: ComputeRecord): void {
  const isOld = (atMs: number) => atMs < world.time.now() - ENDED_MS;
  world.reach('settled record checked');
  if (intent && isOld(intent.atMs)) world.violate('no write stays open', `${computeId}: ${JSON.stringify(intent)}`);
  const open = openOperations.filter(({ startedAtMs }) => isOld(startedAtMs));
  if (open.length > 0) world.violate('operations are followed to their end', `${computeId}: ${JSON.stringify(open)}`);
}

function checkDone(
  world: World,
  compute: EmulatedCompute,
  { files, record }: { files: SimFiles; record: ComputeRecord | undefined },
): void {
  const { id: computeId, projectId } = compute;
  const [projectName = ''] = namesOf(world, projectId);
  if (isUnclear(world, compute, files)) return;
  const [first] = world.people.changes.filter((one) => one.computeId === computeId);
  const baseline = { size: [0, 0] as const, suspendSeconds: 0, ...first?.values };
  const nowMs = world.time.now();
  const valuesAt = (ms: number) => wanted(files, { computeId, projectName, baseline }, [], ms);
  const found = wanted(files, { computeId, projectName, baseline }, holdsNow(world, computeId), nowMs);
  const { want, unclear } = wantedWithFloors(world, compute, { files, found });
  for (const field of FIELDS) {
    if (want.frozen.includes(field)) continue;
    const isBoundary = (ms: number) => ms <= nowMs && String(valuesAt(ms - 1)[field]) !== String(valuesAt(ms)[field]);
    const boundaryMs = Math.max(0, ...edgesOf(files, projectName).filter(isBoundary));
    if (unclear.includes(field) || isLeft(world, computeId, field, { boundaryMs, files })) {
      world.reach('due write not checked');
      continue;
    }
    world.reach('due write checked');
    const soonMs = edgesOf(files, projectName).filter((ms) => ms > nowMs && ms <= nowMs + SOON_MS);
    checkField(world, compute, { field, want, files, soon: soonMs.map((ms) => valuesAt(ms).size) });
    // What is frozen at its boundary is due later.
    if (field === 'size' && !valuesAt(boundaryMs).frozen.includes(field))
      checkOnTime(world, compute, boundaryMs, edgesOf(files, projectName));
    checkNoted(world, computeId, { field, want, record });
    if (holdsNow(world, computeId).length === 0) checkSetBy(world, compute, { field, found, record, files });
  }
}

function checkField(
  world: World,
  compute: EmulatedCompute,
  { field, want, files, soon }: { field: Field; want: Wanted; files: SimFiles; soon: readonly Wanted['size'][] },
): void {
  const has = field === 'size' ? [compute.minCu, compute.maxCu] : compute.suspendTimeoutSeconds || 300;
  const wantedText = JSON.stringify(want[field]);
  if (want[field] === null || JSON.stringify(has) === wantedText) return;
  const size = want.size ?? [0, 0];
  if (field === 'size' && mayWait(world, compute, { files, size, soon })) return;
  world.violate('due writes happen', `${compute.id} has ${field} ${JSON.stringify(has)}, wanted is ${wantedText}`);
}

/** A raise that a boundary in the calm time makes due is made at once, and is said to be, if nothing else happens in the project. */
function checkOnTime(
  world: World,
  { id: computeId, projectId }: EmulatedCompute,
  boundaryMs: number,
  edges: readonly number[],
): void {
  const { plan, time } = world;
  const { effects, ended } = bookOf(world);
  const sinceMs = boundaryMs - Math.max(2 * OPERATION_MS, plan.disruption.cooldownMs);
  if (sinceMs < plan.quietFromMs || time.now() > boundaryMs + DONE_MS || hasSuspended(world, projectId)) return;
  if (troubledUntilMs(world) > sinceMs || isMet(plan, boundaryMs)) return;
  const around = effects.filter(
    (one) => one.atMs > sinceMs && computeNow(world, one.computeId)?.projectId === projectId,
  );
  const [first] = around;
  if (first?.computeId !== computeId || first.atMs < boundaryMs) return;
  const { before, after } = first;
  if (!isSmaller([before.minCu, before.maxCu], [after.minCu, after.maxCu])) return;
  world.reach('raise at a boundary checked');
  const lateMs = first.atMs - boundaryMs;
  if (lateMs > AT_ONCE_MS) world.violate('raises are made on time', `${computeId}: ${lateMs} ms after its boundary`);
  const said = ended.find((one) => one.computeId === computeId && one.atMs >= first.atMs)?.latenessMs;
  // A value may be due by several boundaries: it is late since the first of them.
  const isEdge = (ms: number) => edges.some((edgeMs) => Math.abs(edgeMs - ms) < AT_ONCE_MS);
  const isSaid = said !== undefined && (Math.abs(said - lateMs) < AT_ONCE_MS || isEdge(first.atMs - said));
  if (!isSaid) world.violate('daemons say how late a write is', `${computeId}: ${said} ms, not ${lateMs} ms`);
}

/** True if people, or clients, do something around the boundary of a trial. */
function isMet({ actions, trialsFromMs }: SimPlan, boundaryMs: number): boolean {
  const isNear = (atMs: number) => atMs > trialsFromMs && Math.abs(atMs - boundaryMs) < MET_MS;
  return actions.some(({ do: what, atMs }) => what !== 'add_policy' && isNear(atMs));
}

/** What is wanted of a compute is in its record, for whoever asks. */
function checkNoted(
  world: World,
  computeId: string,
  { field, want, record }: { field: Field; want: Wanted; record: ComputeRecord | undefined },
): void {
  const noted = record?.wanted?.[field === 'size' ? 'size' : 'suspend_timeout']?.fields;
  if (!noted || want[field] === null) return;
  const said = field === 'size' ? [noted.minCu, noted.maxCu] : noted.suspendTimeoutSeconds;
  world.reach('noted value checked');
  if (JSON.stringify(said) !== JSON.stringify(want[field]))
    world.violate('records say what is wanted', `${computeId}: ${JSON.stringify(noted)}, not ${String(want[field])}`);
}

/** Whoever asks is told which policy sets a field: one that there is, and that selects the compute. */
function checkSetBy(
  world: World,
  { id: computeId, projectId }: EmulatedCompute,
  { field, found, record, files }: { field: Field; found: Wanted; record: ComputeRecord | undefined; files: SimFiles },
): void {
  const by = record?.setBy?.[field === 'size' ? 'size' : 'suspend_timeout'];
  if (!record || bookOf(world).harms.some((harm) => harm.computeId === computeId)) return;
  const names = policiesFor(files, namesOf(world, projectId)[0] ?? '').map((policy) =>
    files.web.includes(policy) ? `${TEAM.name}/${policy.name}` : policy.name,
  );
  world.reach('policy of a value checked');
  if (found[field] === null ? by !== undefined : by === undefined || !names.includes(by))
    world.violate('records say which policy sets a value', `${computeId}: ${field} by ${by}, ${JSON.stringify(found)}`);
}

/** A trouble in a trial is over so long after its end, in milliseconds: a daemon goes on after half a minute at most. */
const OVER_MS = 30 * SECOND_MS;

/** Until when a trouble, or a daemon that was killed, in a trial may still delay something. */
function troubledUntilMs({ faults, plan, time }: World): number {
  const isOfTrial = (ms: number) => ms > plan.trialsFromMs && ms <= time.now();
  const kills = plan.actions.flatMap((one) => (one.do === 'kill' ? one.atMs + KILLED_AT_MS + one.backAfterMs : []));
  const ends = [...faults.map(({ untilMs }) => untilMs), ...kills].filter(isOfTrial);
  return Math.max(0, ...ends.map((ms) => ms + OVER_MS));
}

/** True where it is not known what should be: something ended just now, or was never answered. */
function isUnclear(world: World, { id: computeId, projectId, createdAtMs }: EmulatedCompute, files: SimFiles): boolean {
  const { people, time } = world;
  const nowMs = time.now();
  const isCalm = (ms: number) => ms > world.plan.quietFromMs + CALM_MS;
  const untilMs = troubledUntilMs(world);
  // ebb doesn't follow operations of others: the resync loop finds their end.
  const isPrompt = (ms: number) => isCalm(ms) && !hasSuspended(world, projectId);
  const isRecent = (ms: number) => {
    const sinceMs = isCalm(ms) ? Math.max(ms, untilMs) : ms;
    return ms <= nowMs && sinceMs > nowMs - (isPrompt(ms) ? promptMs(world, projectId) : DONE_MS);
  };
  const [name = ''] = namesOf(world, projectId);
  const ends = [...holdsNow(world, computeId), ...freezesNow(world, projectId)].map(({ expiresAtMs }) => expiresAtMs);
  const isFrozen = freezesNow(world, projectId).some(({ expiresAtMs }) => nowMs < expiresAtMs + DONE_MS);
  return (
    isFrozen ||
    isDoubted(world, computeId) ||
    [...edgesOf(files, name), ...ends].some(isRecent) ||
    people.restores.some((one) => one.computeId === computeId) ||
    people.renames.some((one) => one.projectId === projectId) ||
    wasForgotten(world, computeId) ||
    // One that was refused twice is tried again after an hour.
    world.faults.filter((fault) => fault.kind === 'api_refuses' && fault.projectId === projectId).length > 1 ||
    nowMs - createdAtMs < 300 * SECOND_MS
  );
}

/** Cases in which ebb rightly leaves a field as it is, or in which the baseline decides and may have changed. */
function isLeft(
  world: World,
  computeId: string,
  field: Field,
  { boundaryMs, files }: { boundaryMs: number; files: SimFiles },
): boolean {
  const changes = changesOf(world, computeId).filter((one) => one.values[field] !== undefined);
  // What a hold sets has no boundary before its end. A change that was made shortly before it may be seen after it.
  const heldSinceMs = holdsNow(world, computeId)
    .filter(({ values }) => values[field] !== undefined)
    .map(({ acknowledgedAtMs }) => acknowledgedAtMs);
  // A manual raise of the size is respected for twelve hours.
  const isRespected = changes.some(
    ({ atMs }) =>
      field === 'size' || atMs > boundaryMs - SEEN_MS || heldSinceMs.some((sinceMs) => sinceMs < atMs + SEEN_MS),
  );
  const isFought = changes.length >= 3;
  const usesBaseline = [...files.platform, ...files.web].some(
    (policy) => policy.kind === 'limits' || (policy.kind === 'schedule' && policy.otherwise === 'baseline'),
  );
  return isRespected || isFought || (usesBaseline && changes.length > 0);
}

/** True if the platform has suspended a compute of the project just now, or is about to. */
function hasSuspended({ platform, time }: World, projectId: string): boolean {
  return [...platform.platform.world().computes.values()].some(
    (one) =>
      one.projectId === projectId &&
      (one.pendingState === 'idle' || (one.state === 'idle' && (one.suspendedAtMs ?? 0) > time.now() - DONE_MS)),
  );
}

/** How long it takes until all computes of a project are changed. */
function promptMs({ platform }: World, projectId: string): number {
  const computes = [...platform.platform.world().computes.values()].filter((one) => one.projectId === projectId);
  return PROMPT_MS + (computes.length - 1) * OPERATION_MS;
}

/**
 * True if a gate may still hold a size back: the compute does not sleep, was restarted just now, is not known to be healthy, or soon goes
 * back.
 */
function mayWait(
  world: World,
  compute: EmulatedCompute,
  { files, size, soon }: { files: SimFiles; size: readonly [number, number]; soon: readonly Wanted['size'][] },
): boolean {
  const { plan, time } = world;
  const isAwake = compute.state !== 'idle' || (compute.suspendedAtMs ?? 0) > time.now() - ASLEEP_MS;
  const isLowered = isSmaller(size, [compute.minCu, compute.maxCu]);
  const restartedAtMs = bookOf(world).effects.findLast(({ computeId }) => computeId === compute.id)?.atMs ?? 0;
  const isCooling = time.now() < restartedAtMs + plan.disruption.cooldownMs + promptMs(world, compute.projectId);
  if (!isAwake) return false;
  const isUndone = soon.some((then) => then !== null && (isLowered ? isSmaller(size, then) : isSmaller(then, size)));
  const mayStay = plan.disruption.lowerWhen === 'idle' || mayHoldBack(world, compute, files);
  return isCooling || isUndone || (isLowered && mayStay);
}
