/** Rules about files and sets: when files count, for whom, and that an older release doesn't take over from a newer one. */

import { policyProblems, stagedSets } from '../../src/app/rollout/write-permission.ts';
import { SECOND_MS, wasReplaced } from './book.ts';
import type { SimDaemon } from './daemon.ts';
import type { FaultKind } from './plan.ts';
import { FILES, type FileName, parseTexts, type SimFiles } from './policies.ts';
import { filesNow, type World } from './world.ts';

/** A file that was changed in place counts once it is unchanged for so long, in milliseconds; clocks and answers differ by a little. */
const UNCHANGED_MS = 10 * SECOND_MS;
const SLACK_MS = SECOND_MS;

/** Files are looked at so often, and what is found counts so soon, in milliseconds. */
const LOOKED_AT_MS = 6 * SECOND_MS;
const COUNTS_MS = 5 * SECOND_MS;

/** Before a staged set counts, the projects that a daemon has not read yet are read, at the pace that the platform allows. */
const IMPACT_MS = 30 * SECOND_MS;

/** A daemon knows the files and its group so long after its start, or after a trouble, in milliseconds. */
const SETTLED_MS = 30 * SECOND_MS;

/** A newer release is gone once it was not heard of for so long, in milliseconds. */
const GONE_MS = 30 * SECOND_MS;

/** Troubles that let a daemon decide late, or without what others know. */
const OF_DAEMONS: readonly FaultKind[] = [
  'store_slow',
  'store_down',
  'store_unanswered',
  'store_empty',
  'store_older',
  'stall',
  'clock_off',
];
const OF_PLATFORM: readonly FaultKind[] = ['api_slow', 'api_down', 'api_throttled', 'api_unanswered', 'api_lost'];
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

function textsNow({ files: { versions } }: World): Readonly<Record<FileName, string>> {
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
  const live = daemons.filter((one) => isLive(one) && one.startedAtMs < nowMs - SETTLED_MS);
  const settled = live.filter((one) => !hadTrouble(world, OF_DAEMONS, nowMs - SETTLED_MS, one));
  const files = filesNow(world);
  const isInPlace = FILES.some((name) => world.files.versions[name].at(-1)?.how === 'in_place');
  const dueMs = lastMs + (isInPlace ? UNCHANGED_MS : 0) + LOOKED_AT_MS + COUNTS_MS;
  const isTroubled = hadTrouble(world, ALL_TROUBLES, Math.min(dueMs, nowMs) - SETTLED_MS);
  if (lastMs < nowMs - LOOKED_AT_MS && !isTroubled) for (const daemon of settled) checkSaid(world, daemon);
  if (!files || dueMs > nowMs || isTroubled || wasReplaced(world, nowMs - 2 * SETTLED_MS)) return;
  const newest = Math.max(...daemons.filter(isLive).map(({ version }) => version));
  for (const daemon of settled) if (daemon.version === newest) checkCounts(world, daemon, { dueMs, lastMs });
}

/** What is due counts, unless a set waits for its approval, or its impact may still be being counted. */
function checkCounts(
  world: World,
  { parts, index }: SimDaemon,
  { dueMs, lastMs }: { dueMs: number; lastMs: number },
): void {
  const nowMs = world.time.now();
  if (!parts || stagedSets(parts).length > 0 || (parts.sets.stages && nowMs < dueMs + IMPACT_MS)) return;
  world.reach('files in time checked');
  const { hash } = parts.rules.current.policies.set;
  const wanted = parseTexts(textsNow(world));
  if (wanted.ok && hash !== wanted.set.hash)
    world.violate('files count in time', `d${index} has ${hash} after ${nowMs - lastMs} ms`);
}

/** A daemon says that files are broken, and nothing of that kind of files that are not. */
function checkSaid(world: World, { parts, index }: SimDaemon): void {
  if (!parts) return;
  const isBroken = !parseTexts(textsNow(world)).ok;
  const said = policyProblems(parts).filter((one) => one.includes('invalid'));
  world.reach(`said of files checked, ${isBroken}`);
  if (said.length > 0 !== isBroken)
    world.violate('broken files are told of', `d${index}: ${isBroken ? 'nothing' : said[0]}`);
}
