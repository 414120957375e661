/** Rules about files and sets: when files count, for whom, and that an older release doesn't take over from a newer one. */

import { policyProblems, stagedSets } from '../../src/app/rollout/write-permission.ts';
import { SECOND_MS, wasReplaced } from './book.ts';
import type { SimDaemon } from './daemon.ts';
import type { FaultKind } from './plan.ts';
import { FILES, type FileName, parseTexts, type SimFiles, warningsOf } from './policies.ts';
import { checkClockGauge, expectGauge } from './said.ts';
import { filesNow, type World } from './world.ts';

/** A file that was changed in place counts once it is unchanged for so long, in milliseconds; clocks and answers differ by a little. */
const UNCHANGED_MS = 10 * SECOND_MS;
const SLACK_MS = SECOND_MS;

/** Files are looked at so often, and what is found counts so soon, in milliseconds. */
const LOOKED_AT_MS = 6 * SECOND_MS;
const COUNTS_MS = 5 * SECOND_MS;

/** Before a staged set counts, the projects that a daemon has not read yet are read, at the pace that the platform allows. */
const IMPACT_MS = 30 * SECOND_MS;

/** A gauge shows what daemons know so soon, in milliseconds. */
const SHOWN_MS = 16 * SECOND_MS;

/** A daemon knows the files and its group so long after its start, or after a trouble, in milliseconds. */
const SETTLED_MS = 30 * SECOND_MS;

/** A newer release is gone once it was not heard of for so long, in milliseconds. */
const GONE_MS = 30 * SECOND_MS;

/** Troubles that let a daemon decide late, or without what others know. */
export const OF_STORE: readonly FaultKind[] = [
  'store_slow',
  'store_down',
  'store_unanswered',
  'store_empty',
  'store_older',
  'stall',
];
const OF_DAEMONS: readonly FaultKind[] = [...OF_STORE, 'clock_off'];
export const OF_PLATFORM: readonly FaultKind[] = [
  'api_slow',
  'api_down',
  'api_throttled',
  'api_unanswered',
  'api_lost',
];
export const ALL_TROUBLES = [...OF_DAEMONS, ...OF_PLATFORM];

export function hadTrouble(
  { faults }: World,
  kinds: readonly FaultKind[],
  sinceMs: number,
  daemon?: SimDaemon,
): boolean {
  const isOwn = (index: number) => daemon === undefined || index === daemon.index;
  return faults.some((one) => kinds.includes(one.kind) && isOwn(one.daemon) && one.untilMs > sinceMs);
}

export function textsNow({ files: { versions } }: World): Readonly<Record<FileName, string>> {
  return { platform: versions.platform.at(-1)?.text ?? '', web: versions.web.at(-1)?.text ?? '' };
}

function isLive({ life, parts }: SimDaemon): boolean {
  return !life.isKilled && parts !== undefined;
}

/** True if somebody asked that files are read at once: then they count as they are read, also later ones. */
function wasReread({ people }: World, atMs: number): boolean {
  return people.reloads.some(({ endedAtMs }) => endedAtMs >= atMs);
}

/** Called when the group has another set: files that may not be finished don't count yet. */
export function checkInTime(world: World, daemon: SimDaemon, files: SimFiles, before: SimFiles | undefined): void {
  const nowMs = world.time.now();
  if (before === undefined || wasReplaced(world, world.plan.startMs)) return;
  for (const name of FILES) {
    const version = world.files.versions[name].at(-1);
    const isNew = version?.how === 'in_place' && version.policies === files[name];
    const isSame = JSON.stringify(files[name]) === JSON.stringify(before[name]);
    if (!version || !isNew || isSame || wasReread(world, version.atMs)) continue;
    world.reach('delay of files checked');
    const afterMs = nowMs - version.atMs;
    if (afterMs < UNCHANGED_MS - SLACK_MS)
      world.violate('files that are being written wait', `d${daemon.index}: ${name} after ${afterMs} ms`);
  }
}

/** Called when a set is registered: an older release decides for the group only if no newer one runs. */
export async function checkRelease(world: World, daemon: SimDaemon, daemons: readonly SimDaemon[]): Promise<void> {
  const sinceMs = world.time.now() - GONE_MS;
  const decides = (await world.store.current.generation())?.decisionVersion ?? 0;
  if (decides > daemon.version || wasReplaced(world, world.plan.startMs)) return;
  for (const other of daemons) {
    const isNewer = isLive(other) && other.version > daemon.version && other.startedAtMs < sinceMs - SETTLED_MS;
    if (!isNewer || hadTrouble(world, OF_DAEMONS, sinceMs - SETTLED_MS)) continue;
    world.reach('older release checked');
    const has = other.parts?.sets.generation !== undefined;
    if (has) world.violate('a newer release is not taken over from', `d${daemon.index}, while d${other.index} runs`);
  }
}

/** Every few seconds: what counts long since does so everywhere, and what is wrong with files is said. */
export async function checkFiles(world: World, daemons: readonly SimDaemon[]): Promise<void> {
  const nowMs = world.time.now();
  const since = (name: (typeof FILES)[number]) => world.files.versions[name].at(-1)?.atMs ?? 0;
  const lastMs = Math.max(...FILES.map(since));
  for (const daemon of daemons) if (isLive(daemon)) checkClockGauge(world, daemon);
  const live = daemons.filter((one) => isLive(one) && one.startedAtMs < nowMs - SETTLED_MS);
  const settled = live.filter((one) => !hadTrouble(world, OF_DAEMONS, nowMs - SETTLED_MS, one));
  const files = filesNow(world);
  const isInPlace = FILES.some((name) => world.files.versions[name].at(-1)?.how === 'in_place');
  const dueMs = lastMs + (isInPlace ? UNCHANGED_MS : 0) + LOOKED_AT_MS + COUNTS_MS;
  const isTroubled = hadTrouble(world, ALL_TROUBLES, Math.min(dueMs, nowMs) - SETTLED_MS);
  if (lastMs < nowMs - LOOKED_AT_MS && !isTroubled) for (const daemon of settled) checkSaid(world, daemon, lastMs);
  if (!files || dueMs > nowMs || isTroubled || wasReplaced(world, nowMs - 2 * SETTLED_MS)) return;
  const newest = Math.max(...daemons.filter(isLive).map(({ version }) => version));
  for (const daemon of settled) if (daemon.version === newest) checkCounts(world, daemon, { dueMs, lastMs });
}

/**
 * Once a daemon has answered SIGHUP: the files count as they are, unless they wait for approval. A daemon that stops takes no files any more, and
 * that is no fault: it only finishes the writes under way, and the next start reads the files.
 */
export function checkReloaded(world: World, daemon: SimDaemon, askedAtMs: number): void {
  const { parts, index, startedAtMs, isStopping } = daemon;
  const nowMs = world.time.now();
  const isChanged = FILES.some((name) => (world.files.versions[name].at(-1)?.atMs ?? 0) > askedAtMs);
  const isSettled = startedAtMs < nowMs - SETTLED_MS && !hadTrouble(world, ALL_TROUBLES, askedAtMs - SETTLED_MS);
  const result = parseTexts(textsNow(world));
  if (!parts || isStopping || isChanged || !isSettled || !result.ok || stagedSets(parts).length > 0) return;
  world.reach('files at SIGHUP checked');
  const { hash } = parts.rules.current.policies.set;
  if (hash !== result.set.hash) world.violate('files count at once on SIGHUP', `d${index} has ${hash}`);
}

/** What is due counts, unless a set waits for its approval, or its impact may still be being counted. */
function checkCounts(world: World, daemon: SimDaemon, { dueMs, lastMs }: { dueMs: number; lastMs: number }): void {
  const { parts, index, said, startedAtMs } = daemon;
  const nowMs = world.time.now();
  if (!parts || stagedSets(parts).length > 0 || (parts.sets.stages && nowMs < dueMs + IMPACT_MS)) return;
  world.reach('files in time checked');
  const { hash } = parts.rules.current.policies.set;
  const wanted = parseTexts(textsNow(world));
  if (wanted.ok && hash !== wanted.set.hash)
    world.violate('files count in time', `d${index} has ${hash} after ${nowMs - lastMs} ms`);
  const isRead = startedAtMs < lastMs && FILES.every((name) => isOther(world, name, lastMs));
  if (warningsOf(textsNow(world)).length === 0 || !isRead) return;
  world.reach('warnings of files checked');
  if (said.warnedAtMs < lastMs) world.violate('warnings of files are told of', `d${index}`);
}

/** False if a file was changed at this instant, and to what it was before. */
function isOther({ files: { versions } }: World, name: FileName, atMs: number): boolean {
  const [before, last] = versions[name].slice(-2);
  return last?.atMs !== atMs || before?.text !== last.text;
}

/** A daemon says that files are broken, and nothing of that kind of files that are not; and that files wait which may not be finished. */
function checkSaid(world: World, daemon: SimDaemon, lastMs: number): void {
  const { parts, index, said } = daemon;
  if (!parts) return;
  const nowMs = world.time.now();
  const result = parseTexts(textsNow(world));
  const isBroken = !result.ok;
  const problems = policyProblems(parts).filter((one) => one.includes('invalid'));
  world.reach(`said of files checked, ${isBroken}`);
  if (problems.length > 0 !== isBroken)
    world.violate('broken files are told of', `d${index}: ${isBroken ? 'nothing' : problems[0]}`);
  if (lastMs < nowMs - SHOWN_MS - (parts.sets.stages ? IMPACT_MS : 0))
    expectGauge(world, daemon, ['ebb_policy_load_success', {}, isBroken ? 0 : 1]);
  const waits = FILES.some((name) => isWaiting(world, name)) && !wasReread(world, lastMs);
  if (!result.ok || !waits || parts.rules.current.policies.set.hash === result.set.hash) return;
  world.reach('waiting files checked');
  if (said.delayedAtMs < lastMs - UNCHANGED_MS) world.violate('files that wait are told of', `d${index}`);
}

/** True of a file that was changed in place and may not be finished. */
function isWaiting({ files: { versions }, time }: World, name: FileName): boolean {
  const version = versions[name].at(-1);
  return version?.how === 'in_place' && version.atMs > time.now() - UNCHANGED_MS + SLACK_MS;
}
