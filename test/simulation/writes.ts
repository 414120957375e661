/** Rules about single writes: checked when an intent is stored, when the write arrives at the platform, and when its outcome is stored. */

import type { WireRequest } from '../../src/adapters/control-api/http-transport.ts';
import type { ComputeSettings } from '../../src/domain/compute/compute.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import {
  bookOf,
  changesOf,
  computeNow,
  createdAtMs,
  type Effect,
  filesOfGroup,
  freezesNow,
  holdsNow,
  namesOf,
  SECOND_MS,
  SEEN_MS,
  wasForgotten,
  wasStale,
} from './book.ts';
import type { SimDaemon } from './daemon.ts';
import { checkGuards, withFloors } from './guards.ts';
import { edgesOf, FIELDS, type Field, policiesFor, type Wanted, wanted } from './oracle.ts';
import type { SimFiles } from './policies.ts';
import { checkForbidden } from './refusals.ts';
import { checkInTime, checkRelease } from './rollout.ts';
import { checkApproved, checkAtOnce, checkSlot } from './staging.ts';
import { placeOf, settingsAt } from './transport.ts';
import { isDoubted, type World } from './world.ts';

/** When a decision may have been made, before its intent is stored and by a clock that is a little ahead. */
const DECIDED_MS = [0, -15, -10, -7, -5, -3, -1, 1, 2.5].map((seconds) => seconds * SECOND_MS);

/**
 * A request without an answer may still take effect so long after its intent was stored, in milliseconds, and nothing else is sent: ebb
 * waits 20 s by clocks that are apart, and from before a slow store had the intent.
 */
const MAY_ARRIVE_MS = 10 * SECOND_MS;

/** A decision may be made by a reading that is so old, in milliseconds. */
const FRESH_MS = 20 * SECOND_MS;

/** A daemon whose clock is further off writes nothing; milliseconds. */
const CLOCK_OFF_MS = 4_000;

/** Until then policies may not select a compute: their `min_age` is a minute. Milliseconds. */
const YOUNG_MS = 75 * SECOND_MS;

interface StoredIntent {
  projectId: string;
  computeId: string;
  record: ComputeRecord;
  /** When the store was asked, among all calls and answers. */
  order: number;
  /** The group's set when the store was asked. */
  files: Awaited<ReturnType<typeof filesOfGroup>>;
}

/** The write of an intent, in words. */
type Write = StoredIntent & { who: string };

/** Called once an intent is stored: from here on the write may be sent. */
export function checkIntent(world: World, daemon: SimDaemon, stored: StoredIntent): void {
  const { intent } = stored.record;
  const who = `d${daemon.index} ${stored.computeId} ${JSON.stringify(intent?.fields ?? 'restart')}`;
  const write = { ...stored, who };
  checkPending(world, write);
  checkClock(world, daemon, write);
  checkFrozen(world, write);
  checkScope(world, write);
  const { files } = stored;
  if (files === 'unfinished') world.violate('half a file never counts', who);
  else if (files === undefined) world.reach('values not checked: unknown set');
  else checkByFiles(world, daemon, write, files);
}

function checkByFiles(world: World, daemon: SimDaemon, write: Write, files: SimFiles): void {
  checkRenamed(world, write, files);
  if (!write.record.intent?.fields) return;
  checkValues(world, write, files);
  checkGuards(world, daemon, write, files);
  for (const field of FIELDS) checkManual(world, write, files, field);
}

/** Called once the group has another set. */
export async function checkSet(world: World, daemon: SimDaemon, method: string): Promise<void> {
  const book = bookOf(world);
  const files = await filesOfGroup(world);
  if (files === 'unfinished') return world.violate('half a file never counts', `d${daemon.index} registered it`);
  const text = JSON.stringify(files);
  const isRaised = method === 'raiseGeneration';
  if (isRaised) await checkRelease(world, daemon, book.daemons);
  if (files && text !== book.registered && isRaised) {
    checkApproved(world, `d${daemon.index}`, files);
    checkInTime(world, daemon, files, book.registeredFiles);
  }
  book.registered = text;
  book.registeredFiles = files;
}

function checkPending(world: World, { computeId, record, who }: Write): void {
  const nowMs = world.time.now();
  const { pending, onTheWay, lateAtMs } = bookOf(world);
  const before = pending.get(computeId);
  const isOpen = before && nowMs - before.atMs < MAY_ARRIVE_MS && !wasForgotten(world, computeId, before.atMs);
  if (isOpen) world.violate('nothing twice', `${who}: the write ${before.requestId} before it has no outcome yet`);
  const sent = onTheWay.get(computeId);
  // One before it may have done late what it was to do.
  const isDone = sent && (lateAtMs.get(computeId) ?? 0) >= sent.intentAtMs - FRESH_MS;
  if (sent && !isDone && nowMs - sent.intentAtMs < MAY_ARRIVE_MS && !wasForgotten(world, computeId, sent.intentAtMs))
    world.violate('nothing twice', `${who}: the write ${sent.requestId} before it may still take effect`);
  const { requestId = '', policy } = record.intent ?? {};
  pending.set(computeId, { requestId, atMs: nowMs, policy });
}

function checkClock(world: World, { life }: SimDaemon, { who }: Write): void {
  const isLong = world.time.now() - life.offsetSinceMs > 10 * SECOND_MS;
  if (Math.abs(life.offsetMs) > CLOCK_OFF_MS && isLong)
    world.violate('no write with a wrong clock', `${who}: it is off by ${life.offsetMs / 1000} s`);
}

function checkFrozen(world: World, { projectId, order, who }: Write): void {
  for (const { id, expiresAtMs } of freezesNow(world, projectId, order)) {
    if (world.time.now() < expiresAtMs - CLOCK_OFF_MS)
      world.violate('nothing frozen is written', `${who}: freeze ${id}`);
  }
}

/** A team's policies reach no further than its scope; a rename is known after a while. */
function checkScope(world: World, { projectId, record, who }: Write): void {
  const nowMs = world.time.now();
  const [name = ''] = namesOf(world, projectId);
  const renamedAtMs = world.people.renames.findLast((one) => one.projectId === projectId)?.atMs ?? 0;
  const isKnown = nowMs - renamedAtMs > 2 * SEEN_MS && !wasStale(world, renamedAtMs);
  if (isOfTeam(record) && !name.startsWith('web-') && isKnown)
    world.violate('nothing out of scope is written', `${who}: ${record.intent?.policy} on ${name}`);
}

/** A name that brings policies of a team brings them at the next boundary. */
function checkRenamed(world: World, { projectId, computeId, record, who }: Write, files: SimFiles): void {
  const rename = world.people.renames.findLast((one) => one.projectId === projectId);
  const isNews = rename?.to.startsWith('web-') && !rename.from.startsWith('web-');
  if (!rename || !isNews || !isOfTeam(record) || !isQuietSince(world, computeId, rename.atMs)) return;
  // One that was made just before may have been seen under its new name only.
  if (createdAtMs(world, computeId) > rename.atMs - 2 * SEEN_MS) return;
  const nowMs = world.time.now();
  const hadBoundary = edgesOf(files, rename.to).some((ms) => ms > rename.atMs - SEEN_MS && ms < nowMs + 5 * SECOND_MS);
  world.reach('rename checked');
  if (!hadBoundary) world.violate('a new name waits for a boundary', `${who}: ${record.intent?.policy}`);
}

function isOfTeam({ intent }: ComputeRecord): boolean {
  return intent?.policy?.startsWith('team-web/') === true;
}

function checkValues(world: World, { projectId, computeId, record, order, who }: Write, files: SimFiles): void {
  if (isDoubted(world, computeId)) {
    world.reach('values not checked: somebody got no answer');
    return;
  }
  if (world.time.now() - createdAtMs(world, computeId) < YOUNG_MS) {
    world.reach('values not checked: the compute is young');
    return;
  }
  world.reach('values checked');
  const possible = possibleValues(world, { projectId, computeId, record, order }, files);
  if (possible.some((one) => agrees(one, record.intent?.fields ?? {}))) return;
  const policies = policiesFor(files, namesOf(world, projectId)[0] ?? '');
  const what = `${who}: wanted is ${JSON.stringify(possible[0])} by ${JSON.stringify(policies)}`;
  world.violate('only what policies and people want is written', what);
}

/** What may have been wanted when the write was decided: by each name of the project, shortly before and now. */
function possibleValues(
  world: World,
  { projectId, computeId, record, order }: Omit<StoredIntent, 'files'>,
  files: SimFiles,
): Wanted[] {
  const { people, time } = world;
  const nowMs = time.now();
  const { minCu, maxCu, suspendTimeoutSeconds } = record.baseline;
  const baseline = { size: [minCu, maxCu] as const, suspendSeconds: suspendTimeoutSeconds };
  const holds = holdsNow(world, computeId, order);
  // Of this very instant: it may have been said a moment after.
  const isNews = (hold: (typeof holds)[number]) => hold.acknowledgedOrder > order || hold.endedAtMs === nowMs;
  const news = people.holds.filter((hold) => hold.computeId === computeId && isNews(hold));
  const isRestored = people.restores.some((one) => one.computeId === computeId);
  // What lies between two edges that are close together was decided just before the second.
  const isLate = (ms: number) => ms < 0 && ms > Math.min(...DECIDED_MS);
  const beforeExpiry = holds.map(({ expiresAtMs }) => expiresAtMs - 1 - nowMs).filter(isLate);
  const decidedMs = [...DECIDED_MS, ...beforeExpiry];
  const moments = [...decidedMs.map((ms) => [ms, holds] as const), [0, [...holds, ...news]] as const];
  return namesOf(world, projectId).flatMap((projectName) =>
    moments.flatMap(([ms, known]) => {
      const found = wanted(files, { computeId, projectName, baseline }, known, nowMs + ms);
      const possible = isRestored ? { ...found, ...withDefaults(found, baseline) } : found;
      return withFloors(world, computeId, possible, policiesFor(files, projectName));
    }),
  );
}

function withDefaults(
  { size, suspendSeconds }: Wanted,
  baseline: { size: readonly [number, number]; suspendSeconds: number },
) {
  return { size: size ?? baseline.size, suspendSeconds: suspendSeconds ?? baseline.suspendSeconds };
}

function agrees({ size, suspendSeconds, frozen }: Wanted, fields: Partial<ComputeSettings>): boolean {
  if (frozen.some((field) => isSent(field, fields))) return false;
  const { minCu = size?.[0], maxCu = size?.[1], suspendTimeoutSeconds = suspendSeconds } = fields;
  return minCu === size?.[0] && maxCu === size?.[1] && suspendTimeoutSeconds === suspendSeconds;
}

function isSent(field: Field, fields: Partial<ComputeSettings>): boolean {
  if (field === 'size') return fields.minCu !== undefined || fields.maxCu !== undefined;
  return fields.suspendTimeoutSeconds !== undefined;
}

/** A manual change is respected to the next boundary of its field. Before ebb's first change whatever is there is the baseline. */
function checkManual(world: World, { projectId, computeId, record, who }: Write, files: SimFiles, field: Field): void {
  const nowMs = world.time.now();
  const change = changesOf(world, computeId).findLast((one) => one.values[field] !== undefined);
  if (!change || nowMs - change.atMs < SEEN_MS) return;
  if (!isSent(field, record.intent?.fields ?? {}) || !isSent(field, record.lastApplied)) return;
  const sinceMs = change.atMs - SEEN_MS;
  const names = namesOf(world, projectId);
  const isHard = policiesFor(files, names[0] ?? '').some((policy) => policy.kind === 'limits' && policy.hard);
  const hadBoundary = names.some((name) =>
    edgesOf(files, name).some((ms) => ms > sinceMs && ms < nowMs + 5 * SECOND_MS),
  );
  const isQuiet = !hadBoundary && !isHard && isQuietSince(world, computeId, sinceMs);
  world.reach(isQuiet ? 'manual change checked' : 'manual change not checked');
  const ago = (nowMs - change.atMs) / 1000;
  if (isQuiet) world.violate('a manual change is respected', `${who}: somebody set ${field} ${ago} s ago`);
}

/** False if anything else than a boundary may have changed what is wanted of a compute, or what is known. */
function isQuietSince(world: World, computeId: string, sinceMs: number): boolean {
  const { people, files } = world;
  const isNews = ({ atMs }: { atMs: number }) => atMs > sinceMs;
  const isOwn = (one: { computeId: string }) => one.computeId === computeId;
  const edits = Object.values(files.versions).flatMap((versions) => versions.slice(1));
  const lastMs = (one: { acknowledgedAtMs: number; endedAtMs: number; expiresAtMs: number }) =>
    Math.max(one.acknowledgedAtMs, Math.min(one.endedAtMs, one.expiresAtMs));
  return !(
    edits.some(isNews) ||
    people.holds.filter(isOwn).some((hold) => lastMs(hold) > sinceMs) ||
    people.freezes.some((freeze) => lastMs(freeze) > sinceMs) ||
    people.releases.filter(isOwn).some(isNews) ||
    people.restores.some(isOwn) ||
    people.renames.some(isNews) ||
    isDoubted(world, computeId) ||
    wasForgotten(world, computeId, sinceMs) ||
    wasStale(world, sinceMs)
  );
}

/** Called when a write is sent; until it arrives, or is refused, it may take effect. */
export function noteSent(world: World, daemon: SimDaemon, request: WireRequest): void {
  checkForbidden(world, daemon, request);
  const place = placeOf(request);
  const { pending, onTheWay } = bookOf(world);
  const intent = place && pending.get(place.computeId);
  if (place && intent?.requestId === request.requestId)
    onTheWay.set(place.computeId, { requestId: request.requestId, intentAtMs: intent.atMs });
}

/** Called when it has arrived, or was refused. */
export function noteArrived(world: World, request: WireRequest, { isLate = false } = {}): void {
  const place = placeOf(request);
  const { onTheWay, lateAtMs } = bookOf(world);
  if (place && isLate) lateAtMs.set(place.computeId, world.time.now());
  if (place && onTheWay.get(place.computeId)?.requestId === request.requestId) onTheWay.delete(place.computeId);
}

/** Called when a write has been answered by the platform, with what was there before. */
export function noteEffect(
  world: World,
  request: WireRequest,
  { before, isDone, wasAwake }: Pick<Effect, 'wasAwake'> & { before: ComputeSettings | undefined; isDone: boolean },
): void {
  const arrival = bookOf(world).arrived.findLast(({ requestId }) => requestId === request.requestId);
  if (arrival) arrival.isDone = isDone;
  const place = placeOf(request);
  const after = settingsAt(world, request);
  if (!place || !before || !after || JSON.stringify(before) === JSON.stringify(after)) return;
  bookOf(world).effects.push({ computeId: place.computeId, atMs: world.time.now(), before, after, wasAwake });
}

/** Called when a write reaches the platform, before it takes effect. */
export function checkArrival(world: World, daemon: SimDaemon, request: WireRequest): void {
  const place = placeOf(request);
  const now = settingsAt(world, request);
  if (!place || !now) return;
  const { computeId, projectId } = place;
  const who = `d${daemon.index} ${computeId} ${request.method} ${request.body ?? ''}`;
  const { pending, underWay } = bookOf(world);
  const nowMs = world.time.now();
  world.reach('write arrives');
  const asked = request.method === 'PATCH' ? askedFields(request) : {};
  bookOf(world).arrived.push({
    atMs: nowMs,
    requestId: request.requestId,
    computeId,
    who,
    asked,
    isRestart: request.method !== 'PATCH',
    before: now,
  });
  const isStored = pending.get(computeId)?.requestId === request.requestId;
  if (!isStored && !wasForgotten(world, computeId, nowMs - 30 * SECOND_MS))
    world.violate('no write without an intent', who);
  const other = underWay.get(projectId);
  if (other && other.daemon !== daemon && !other.daemon.life.isKilled)
    world.violate('one writer for a project', `${who}: d${other.daemon.index} writes too`);
  underWay.set(projectId, { daemon, requestId: request.requestId });
  if (request.method === 'PATCH') checkPatch(world, who, computeId, { now, asked: askedBy(request, now) });
}

function askedBy(request: WireRequest, now: ComputeSettings): ComputeSettings {
  return { ...now, ...askedFields(request) };
}

function askedFields({ body = '{}' }: WireRequest): Partial<ComputeSettings> {
  const endpoint = (JSON.parse(body).endpoint ?? {}) as Record<string, number>;
  const { autoscaling_limit_min_cu: minCu, autoscaling_limit_max_cu: maxCu, suspend_timeout_seconds } = endpoint;
  return {
    ...(minCu !== undefined && { minCu }),
    ...(maxCu !== undefined && { maxCu }),
    ...(suspend_timeout_seconds !== undefined && { suspendTimeoutSeconds: suspend_timeout_seconds }),
  };
}

/** True if readings show what there is, and what took effect before the last one. */
function isKnown(world: World, computeId: string, sinceMs: number): boolean {
  const isLate = (bookOf(world).lateAtMs.get(computeId) ?? 0) > world.time.now() - FRESH_MS;
  return !isLate && !wasForgotten(world, computeId, sinceMs) && !wasStale(world, sinceMs);
}

/** A change that depends on sleep is made from a reading that is so old at most, where nothing is in trouble; milliseconds. */
const READ_BEFORE_MS = 6 * SECOND_MS;

/** How long ago something happened that a write must know of. */
function seenMs({ faults, time }: World): number {
  const isCalm = faults.every(({ kind, untilMs }) => kind.startsWith('source_') || untilMs < time.now() - SEEN_MS);
  return isCalm ? READ_BEFORE_MS : SEEN_MS;
}

function checkPatch(
  world: World,
  who: string,
  computeId: string,
  { now, asked }: { now: ComputeSettings; asked: ComputeSettings },
): void {
  const sinceMs = world.time.now() - SEEN_MS;
  const isTouched = changesOf(world, computeId).some(({ atMs }) => atMs > sinceMs);
  const isSize = now.minCu !== asked.minCu || now.maxCu !== asked.maxCu;
  const isChanged = isSize || now.suspendTimeoutSeconds !== asked.suspendTimeoutSeconds;
  if (!isChanged && !isTouched && isKnown(world, computeId, sinceMs))
    world.violate('nothing twice', `${who}: it has that already`);
  const compute = computeNow(world, computeId);
  const isAwake =
    compute?.state === 'active' && (compute.startedAtMs ?? Number.POSITIVE_INFINITY) < world.time.now() - seenMs(world);
  if (!isSize || !isAwake) return;
  world.reach('write restarts an awake compute');
  checkAtOnce(world, who, computeId);
  checkSlot(world, who, computeId);
  const isLowered = asked.maxCu < now.maxCu || (asked.maxCu === now.maxCu && asked.minCu < now.minCu);
  const isAsked =
    holdsNow(world, computeId).length > 0 || isDoubted(world, computeId) || world.people.restores.length > 0;
  const isSeen = !isTouched && !wasStale(world, sinceMs);
  const waits = world.plan.disruption.lowerWhen === 'idle' && !isAsked && isSeen;
  if (isLowered && waits) world.violate('a lowering waits for sleep', who);
}

/** Called when the platform has answered a write. */
export function noteAnswer(world: World, request: WireRequest): void {
  const place = placeOf(request);
  const { underWay } = bookOf(world);
  if (place && underWay.get(place.projectId)?.requestId === request.requestId) underWay.delete(place.projectId);
}

/** Called when a record is stored. */
export function checkRecord(world: World, computeId: string, record: ComputeRecord): void {
  const { pending } = bookOf(world);
  if (!record.intent) pending.delete(computeId);
  if (wasForgotten(world, computeId)) return;
  const { minCu, maxCu, suspendTimeoutSeconds } = record.baseline;
  const known = world.people.changes.filter((one) => one.computeId === computeId).map(({ values }) => values);
  const isSize = known.some(({ size }) => size?.[0] === minCu && size[1] === maxCu);
  const isTimeout = known.some(({ suspendSeconds }) => suspendSeconds === suspendTimeoutSeconds);
  if (known.length > 0 && !(isSize && isTimeout))
    world.violate('baselines change only by a person', `${computeId}: ${JSON.stringify(record.baseline)}`);
}
