/** Rules about guards: what is asked before a lowering, what is found after it, and what then stays. */

import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { Compute as EmulatedCompute } from '../../src/emulator/world/entities.ts';
import {
  bookOf,
  changesOf,
  computeNow,
  type Effect,
  filesOfGroup,
  holdsNow,
  namesOf,
  SECOND_MS,
  SEEN_MS,
  type SimHarm,
  wasForgotten,
  wasReplaced,
  wasStale,
} from './book.ts';
import type { SimDaemon } from './daemon.ts';
import { type Field, policiesFor, selects, type Wanted, withinHardLimits } from './oracle.ts';
import { GUARD_TIMES, type SimFiles, type SimGuard, type SimPolicy, type SimSize, type SimValues } from './policies.ts';
import { isDoubted, type World } from './world.ts';

/** What a daemon was told may decide until it is so old, in milliseconds; and a write may follow its decision so much later. */
const TOLD_MS = 90 * SECOND_MS;
const DECIDED_MS = 15 * SECOND_MS;

/** Longer than guards are asked, and a lowering that may be made is made after it; milliseconds. */
const ASKED_MS = 80 * SECOND_MS;

/** Clocks of daemons that write are less apart, in milliseconds. */
const APART_MS = 4 * SECOND_MS;

/** A harm is stored, and people are told, within this time after it could be found, in milliseconds. */
const FOUND_MS = 100 * SECOND_MS;

interface Subject {
  projectId: string;
  computeId: string;
}

/** The guards that select a project by each of its names. */
function guardsOf(world: World, projectId: string, files: SimFiles): SimGuard[] {
  const names = namesOf(world, projectId);
  const guards = policiesFor(files, names[0] ?? '').filter((policy) => policy.kind === 'guard');
  return guards.filter((guard) => names.every((name) => selects(guard, name)));
}

export function isSmaller(asked: SimSize, [minCu, maxCu]: SimSize): boolean {
  return asked[1] < maxCu || (asked[1] === maxCu && asked[0] < minCu);
}

const isShorter = (asked: number, than: number) => asked !== -1 && (than === -1 || asked < than);

function sizeOf({ minCu, maxCu }: { minCu: number; maxCu: number }): SimSize {
  return [minCu, maxCu];
}

/** True if a person, or a hard limit, may want what is written. */
function mayBeAsked(world: World, { projectId, computeId }: Subject, files: SimFiles): boolean {
  const { people, time } = world;
  const isLate = (ms: number) => ms > time.now() - SEEN_MS;
  const names = namesOf(world, projectId);
  const isHard = names.some((name) =>
    policiesFor(files, name).some((policy) => policy.kind === 'limits' && policy.hard),
  );
  return (
    isHard ||
    isDoubted(world, computeId) ||
    people.holds.some((hold) => hold.computeId === computeId && isLate(Math.min(hold.endedAtMs, hold.expiresAtMs))) ||
    people.restores.some((one) => one.computeId === computeId)
  );
}

/** Called once the intent of a change is stored. */
export function checkGuards(
  world: World,
  daemon: SimDaemon,
  write: Subject & { record: ComputeRecord; who: string },
  files: SimFiles,
): void {
  const { computeId, record, who } = write;
  const compute = computeNow(world, computeId);
  const { fields } = record.intent ?? {};
  if (!compute || !fields || mayBeAsked(world, write, files)) return;
  const { minCu = compute.minCu, maxCu = compute.maxCu, suspendTimeoutSeconds } = fields;
  const asked: SimValues = {
    ...(fields.maxCu !== undefined && { size: [minCu, maxCu] }),
    ...(suspendTimeoutSeconds !== undefined && { suspendSeconds: suspendTimeoutSeconds }),
  };
  if (asked.size && isSmaller(asked.size, sizeOf(compute))) checkAsked(world, daemon, compute, { who, files });
  for (const { field, values } of floorsNow(world, write, files)) {
    const isBelow =
      field === 'size'
        ? asked.size?.some((cu, end) => cu < (values.size?.[end] ?? 0))
        : asked.suspendSeconds !== undefined && isShorter(asked.suspendSeconds, values.suspendSeconds ?? 0);
    world.reach('floor checked');
    if (isBelow) world.violate('what a guard took back stays so', `${who}: ${JSON.stringify(values)} is the floor`);
  }
}

/** An awake compute is lowered only by a daemon that was told, not long ago and last, that it is healthy. */
function checkAsked(
  world: World,
  daemon: SimDaemon,
  compute: EmulatedCompute,
  { who, files }: { who: string; files: SimFiles },
): void {
  const { id: computeId, projectId, state, startedAtMs = Number.POSITIVE_INFINITY, createdAtMs } = compute;
  const nowMs = world.time.now();
  const sinceMs = nowMs - SEEN_MS;
  const isAwake = state === 'active' && startedAtMs < sinceMs && createdAtMs < nowMs - 2 * SEEN_MS;
  const isSeen = !wasStale(world, sinceMs) && !changesOf(world, computeId).some(({ atMs }) => atMs > sinceMs);
  if (!isAwake || !isSeen) return;
  for (const { name } of guardsOf(world, projectId, files)) {
    const told = bookOf(world).told.filter(
      (one) => one.daemon === daemon && one.guard === name && one.computeId === computeId,
    );
    const isPossible = (at: number) => (told[at + 1]?.answeredAtMs ?? nowMs) >= nowMs - DECIDED_MS;
    const isHealthy = told.some(
      ({ state: said, answeredAtMs }, at) =>
        said === 'healthy' && isPossible(at) && answeredAtMs > nowMs - TOLD_MS - 2 * DECIDED_MS,
    );
    world.reach(`guarded lowering checked`);
    if (!isHealthy) world.violate('awake computes are lowered only while healthy', `${who}: ${name} does not say so`);
  }
}

/** What a guard has found, in what is stored with a record. */
export function harmIn(args: readonly unknown[]): HistoryEntry | undefined {
  const also = args[4] as { audit?: HistoryEntry } | undefined;
  return also?.audit?.kind === 'guard' ? also.audit : undefined;
}

const nameIn = (qualified: string) => qualified.split('/').at(-1) ?? '';

function textOfPolicy(files: SimFiles, qualified: string): string | undefined {
  const ofFile = qualified.includes('/') ? files.web : files.platform;
  const found = ofFile.find(({ name }) => name === nameIn(qualified));
  return found && JSON.stringify(found);
}

/** Called once a harm is stored. */
export async function noteHarm(
  world: World,
  { index }: SimDaemon,
  record: ComputeRecord,
  { computeId, policy = '' }: HistoryEntry,
): Promise<void> {
  const { guardFinding: finding, floors = {} } = record;
  if (!finding) return world.violate('a harm is in the record', `d${index} ${computeId}`);
  const { loweredAtMs, foundAtMs, remedy } = finding;
  world.reach(`guard harm, ${remedy}`);
  const { harms } = bookOf(world);
  checkHarm(world, {
    computeId,
    guard: nameIn(policy),
    loweredAtMs,
    foundAtMs,
    who: `d${index} ${computeId} ${policy}`,
  });
  const files = await filesOfGroup(world);
  const texts = typeof files === 'object' ? files : undefined;
  const found = Object.entries(floors).filter(([, { sinceMs }]) => sinceMs === foundAtMs);
  harms.push({
    ...{ computeId, guard: policy, atMs: world.time.now(), loweredAtMs, remedy },
    floors: found.map(([group, { fields, policy: lowering }]) => {
      const { minCu = 0, maxCu = 0, suspendTimeoutSeconds = 0 } = fields;
      const isSize = group === 'size';
      return {
        field: isSize ? 'size' : 'suspendSeconds',
        values: isSize ? { size: [minCu, maxCu] } : { suspendSeconds: suspendTimeoutSeconds },
        by: lowering,
        terms: [texts && textOfPolicy(texts, lowering), texts && textOfPolicy(texts, policy)],
      };
    }),
  });
}

/** A harm follows a lowering, each lowering has one, and the compute was bad all the time. */
function checkHarm(
  world: World,
  harm: { computeId: string; guard: string; loweredAtMs: number; foundAtMs: number; who: string },
): void {
  const { computeId, guard, loweredAtMs, foundAtMs, who } = harm;
  const { harms, told } = bookOf(world);
  if (wasForgotten(world, computeId)) return;
  const before = harms.findLast((one) => one.computeId === computeId);
  const lowered = effectsOf(world, computeId).filter(isLowering);
  const isNew = lowered.some(({ atMs }) => atMs > (before?.loweredAtMs ?? 0) + APART_MS);
  if (before && (before.loweredAtMs === loweredAtMs || !isNew)) world.violate('nothing is undone twice', who);
  const own = told.filter((one) => one.guard === guard && one.computeId === computeId);
  const finding = own.find(({ askedAtMs, state }) => askedAtMs === foundAtMs && state === 'bad');
  const sinceMs = foundAtMs - GUARD_TIMES.forMs + APART_MS;
  const isBroken = own.some(
    ({ daemon, askedAtMs, state }) =>
      daemon === finding?.daemon && askedAtMs > sinceMs && askedAtMs <= foundAtMs && state === 'healthy',
  );
  if (!finding || isBroken) world.violate('a harm is bad all the time', who);
  if (lowered.length === 0) world.violate('a harm follows a lowering', who);
}

function effectsOf(world: World, id: string): Effect[] {
  return bookOf(world).effects.filter(({ computeId }) => computeId === id);
}

function isLowering({ before, after }: Effect): boolean {
  // 0 is the platform's default.
  const [timeout, was] = [after.suspendTimeoutSeconds || 300, before.suspendTimeoutSeconds || 300];
  return isSmaller(sizeOf(after), sizeOf(before)) || isShorter(timeout, was);
}

type Floor = SimHarm['floors'][number] & { remedy: SimGuard['remedy'] };

/** The newest floors of a compute, whatever has become of them. */
function allFloors(world: World, computeId: string): (Floor & { harm: SimHarm })[] {
  const all = bookOf(world)
    .harms.filter((harm) => harm.computeId === computeId)
    .flatMap((harm) => harm.floors.map((floor) => ({ ...floor, remedy: harm.remedy, harm })));
  return all.filter(({ field }, at) => all.findLastIndex((one) => one.field === field) === at);
}

/** Floors that hold for certain: nobody has released them, nothing was lost, and guard and policy are as they were. */
function floorsNow(world: World, { projectId, computeId }: Subject, files: SimFiles): Floor[] {
  const guards = new Set(guardsOf(world, projectId, files).map((guard) => JSON.stringify(guard)));
  return allFloors(world, computeId).filter(({ by, terms: [lowering, guard], harm: { atMs } }) => {
    const isReleased = world.people.guardReleases.some(
      (one) => one.computeId === computeId && one.atMs > atMs - SEEN_MS,
    );
    const isSame = lowering !== undefined && textOfPolicy(files, by) === lowering;
    return isSame && guards.has(guard ?? '') && !isReleased && !wasForgotten(world, computeId, atMs);
  });
}

/** What may be wanted where floors may count: with each of them, with both, and without. */
export function withFloors(world: World, computeId: string, found: Wanted, policies: readonly SimPolicy[]): Wanted[] {
  const wanted = [found];
  for (const { values } of allFloors(world, computeId))
    wanted.push(...wanted.map((one) => above(world, computeId, one, values)));
  return wanted.map((one) => (one === found ? one : { ...one, size: withinHardLimits(policies, one.size) }));
}

function above(world: World, computeId: string, found: Wanted, { size, suspendSeconds }: SimValues): Wanted {
  const compute = computeNow(world, computeId);
  const from = found.size ?? (compute ? sizeOf(compute) : [0, 0]);
  const timeout = found.suspendSeconds ?? (compute?.suspendTimeoutSeconds || 300);
  return {
    ...found,
    ...(size && { size: [Math.max(size[0], from[0]), Math.max(size[1], from[1])] as const }),
    ...(suspendSeconds !== undefined && {
      suspendSeconds: isShorter(timeout, suspendSeconds) ? suspendSeconds : timeout,
    }),
  };
}

/** What is wanted of a compute with its floors; undefined for fields of which it is not known if they count, or when they may be set. */
export function wantedWithFloors(
  world: World,
  compute: EmulatedCompute,
  { files, found }: { files: SimFiles; found: Wanted },
): { want: Wanted; unclear: readonly Field[] } {
  const { id: computeId, projectId, state } = compute;
  const floors = floorsNow(world, { projectId, computeId }, files);
  const isHeld = holdsNow(world, computeId).length > 0 || mayBeAsked(world, { projectId, computeId }, files);
  // Undone without a restart, a size waits for sleep.
  const isClear = ({ field, remedy }: Floor) =>
    !isHeld && (field !== 'size' || remedy === 'undo_with_restart' || state === 'idle');
  const raised = floors.reduce((now, { values }) => above(world, computeId, now, values), found);
  // Where no policy sets a field any more, a compute that has at least its floor is left alone.
  const isSame = {
    size: String(raised.size) === String(sizeOf(compute)),
    suspendSeconds: raised.suspendSeconds === (compute.suspendTimeoutSeconds || 300),
  };
  const want = {
    ...raised,
    ...(found.size === null && isSame.size && { size: null }),
    ...(found.suspendSeconds === null && isSame.suspendSeconds && { suspendSeconds: null }),
  };
  const unclear = allFloors(world, computeId)
    .map(({ field }) => field)
    .filter((field) => !floors.some((floor) => floor.field === field && isClear(floor)));
  return { want, unclear };
}

/** True if a guard may hold back a lowering: it has not said for long that the compute is healthy. */
export function mayHoldBack(
  world: World,
  { id, projectId, startedAtMs = 0 }: EmulatedCompute,
  files: SimFiles,
): boolean {
  const { told } = bookOf(world);
  const sinceMs = world.time.now() - ASKED_MS;
  const names = namesOf(world, projectId);
  const guards = policiesFor(files, names[0] ?? '').filter(({ kind }) => kind === 'guard');
  return guards.some(({ name }) => {
    const own = told.filter((one) => one.guard === name && one.computeId === id && one.answeredAtMs > sinceMs);
    return startedAtMs > sinceMs || own.length === 0 || own.some(({ state }) => state !== 'healthy');
  });
}

/** At the end: a harm that could be seen was found, and people were told of each. */
export function checkHarms(world: World, files: SimFiles): void {
  const nowMs = world.time.now();
  const { harms, messages } = bookOf(world);
  for (const { computeId, loweredAtMs, atMs } of harms) {
    if (atMs > nowMs - FOUND_MS || wasReplaced(world, atMs - SEEN_MS)) continue;
    world.reach('message checked');
    const id = `guard:${computeId}:${loweredAtMs}`;
    if (!messages.has(id)) world.violate('people are told of harms', `${id} was not sent`);
  }
  for (const compute of world.platform.platform.world().computes.values()) checkFound(world, compute, files);
}

/** After a lowering in the quiet time, where nothing else can explain what a guard sees. */
function checkFound(world: World, compute: EmulatedCompute, files: SimFiles): void {
  const { id: computeId, projectId, state, startedAtMs = 0 } = compute;
  const { told, harms } = bookOf(world);
  const nowMs = world.time.now();
  const last = effectsOf(world, computeId).at(-1);
  const [name = ''] = namesOf(world, projectId);
  if (!last || !isLowering(last) || last.atMs < world.plan.quietFromMs + SEEN_MS) return;
  const beginsMs = Math.max(last.atMs, startedAtMs);
  const isLong = beginsMs < nowMs - GUARD_TIMES.forMs - FOUND_MS && beginsMs - last.atMs < GUARD_TIMES.watchMs;
  if (state !== 'active' || !isLong || mayBeAsked(world, { projectId, computeId }, files)) return;
  if (wasForgotten(world, computeId) || changesOf(world, computeId).length > 0) return;
  for (const guard of policiesFor(files, name).filter((policy) => policy.kind === 'guard')) {
    const around = told.filter((one) => one.guard === guard.name && one.answeredAtMs > last.atMs - 2 * TOLD_MS);
    const others = around.filter((one) => one.computeId !== computeId);
    const own = around.filter((one) => one.computeId === computeId);
    const isBadSince = own.filter(({ askedAtMs }) => askedAtMs > beginsMs + APART_MS);
    const wasBad = own.some(({ answeredAtMs, state: said }) => answeredAtMs <= last.atMs && said === 'bad');
    const isOwn = !others.some((one) => one.state === 'bad') && !wasBad;
    const isSeen = isBadSince.length > 3 && isBadSince.every((one) => one.state === 'bad');
    const isFew = harms.filter(({ atMs }) => atMs > nowMs - 600 * SECOND_MS).length < 2;
    if (!isOwn || !isSeen || !isFew || namesOf(world, projectId).length > 1) continue;
    world.reach('harm expected');
    if (!harms.some((harm) => harm.computeId === computeId && harm.atMs > last.atMs))
      world.violate(
        'a harm is found',
        `${computeId} is bad by ${guard.name} since ${new Date(beginsMs).toISOString()}`,
      );
  }
}
