/** Rules about what daemons know and keep once nothing has happened for minutes. */

import { policyProblems, stagedSets } from '../../src/app/rollout/write-permission.ts';
import { bookOf, changesOf, SECOND_MS } from './book.ts';
import type { SimDaemon } from './daemon.ts';
import { edgesOf } from './oracle.ts';
import type { SimFiles } from './policies.ts';
import { rhythmOf, USUAL } from './rhythm.ts';
import { ALL_TROUBLES, hadTrouble } from './rollout.ts';
import { checkGauges } from './said.ts';
import { checkCounted } from './staging.ts';
import { isCalm } from './thrift.ts';
import type { World } from './world.ts';

/** A lease on a project is given back within this time, in milliseconds, by a daemon that runs. */
const LEASE_MS = 5 * SECOND_MS;

const MINUTE_MS = 60 * SECOND_MS;

/** A daemon knows what there is after so long, in milliseconds. */
const KNOWN_MS = 100 * SECOND_MS;

/** A project is not locked more often in ten seconds, whatever is in trouble. */
const MOST_PASSES = 400;
const PASSES_MS = 10 * SECOND_MS;

/** Called when a daemon's store has answered: leases and slots are remembered. */
export function noteTaken(
  world: World,
  daemon: SimDaemon,
  { method, args, result }: { method: string; args: unknown[]; result: unknown },
): void {
  const { leases, passes, slots } = bookOf(world);
  const name = String(args[0]);
  if (method === 'acquireLease' && name.startsWith('project-')) {
    const key = `${name} ${Math.floor(world.time.now() / PASSES_MS)}`;
    passes.set(key, (passes.get(key) ?? 0) + 1);
  }
  if (method === 'acquireLease' && result) leases.set(String(args[0]), { daemon, atMs: world.time.now() });
  if (method === 'takeSlot' && result) {
    const { policy, computeId } = args[0] as { policy: string; computeId: string };
    slots.set(`${policy} ${computeId}`, world.time.now());
  }
  if (method === 'releaseLease') leases.delete((args[0] as { name: string }).name);
}

/** What a daemon decides by is so old at most when it stores what it is about to write. It looks for a newer set in each round. */
const DECIDED_MS = 3 * SECOND_MS;
const SET_KNOWN_MS = USUAL.rulesMs + SECOND_MS;

/** Called when a daemon wanted to write by holds, freezes or a set that have changed: only just now, or it should have known. */
export function checkOutdated(world: World, daemon: SimDaemon): void {
  const nowMs = world.time.now();
  if (hadTrouble(world, ALL_TROUBLES, nowMs - 10 * SECOND_MS, daemon)) return;
  world.reach('outdated decision checked');
  const { newsAtMs, setAtMs } = bookOf(world);
  if (nowMs - newsAtMs > DECIDED_MS && nowMs - setAtMs > SET_KNOWN_MS)
    world.violate('nothing is decided by what is known to be old', `d${daemon.index}: ${nowMs - newsAtMs} ms ago`);
}

/** What guards find, and writes that meet an operation that the platform has begun by itself. */
const EXPECTED = /^ebb\.(guard_.*|write)$/;

/** Called when a daemon warns of something: of what, once nothing has happened for minutes? */
export function checkWarned(world: World, who: string, fields: object): void {
  const { event = '' } = fields as { event?: string };
  if (event === 'ebb.policies_staged') checkCounted(world, who, fields as Parameters<typeof checkCounted>[2]);
  if (!isCalm(world.plan, world.time.now())) return;
  world.reach('warning checked');
  if (!EXPECTED.test(event)) world.violate('nothing is warned of without need', `${who}: ${event}`);
}

/** Called when a record is stored alone. */
export function checkNeeded(world: World, who: string, [, computeId, record, , also]: readonly unknown[]): void {
  const { stored } = bookOf(world);
  const text = JSON.stringify(record);
  const id = String(computeId);
  world.reach('stored record compared');
  if (stored.get(id) === text && !(also as { audit?: unknown } | undefined)?.audit)
    world.violate('nothing is stored without need', `${who} ${id}: ${text}`);
  stored.set(id, text);
}

/** At the end of a quiet time. */
export async function checkCalm(world: World, daemons: readonly SimDaemon[], files: SimFiles): Promise<void> {
  const nowMs = world.time.now();
  for (const [name, { daemon, atMs }] of bookOf(world).leases) {
    if (!name.startsWith('project-')) continue;
    world.reach('lease checked');
    if (daemons.includes(daemon) && atMs < nowMs - LEASE_MS)
      world.violate('leases are given back', `d${daemon.index} keeps ${name}`);
  }
  const newest = Math.max(...daemons.map(({ version }) => version));
  for (const daemon of daemons) {
    checkRules(world, daemon, newest);
    checkGauges(world, daemon, newest);
  }
  checkKnowledge(world, daemons);
  for (const [key, count] of bookOf(world).passes)
    if (count > MOST_PASSES) world.violate('nothing is tried without rest', `${key}: ${count} times in ten seconds`);
  await checkJobs(world, daemons, files);
}

function checkRules(world: World, daemon: SimDaemon, newest: number): void {
  const { parts, index, version } = daemon;
  if (!parts) return;
  const problems = [
    ...policyProblems(parts).filter((one) => !one.includes('release')),
    ...stagedSets(parts).map(({ message }) => message),
  ];
  world.reach('problems of policies checked');
  if (problems.length > 0) world.violate('no problem of policies is left', `d${index}: ${problems[0]}`);
  const why = parts.sets.generation === undefined ? 'staged' : parts.sets.newer && 'superseded';
  if (version === newest && why) world.violate('the newest release may write', `d${index}: ${why}`);
}

/** One of the daemons, at least, shows each compute as it is. */
function checkKnowledge(world: World, daemons: readonly SimDaemon[]): void {
  const sinceMs = world.time.now() - KNOWN_MS;
  if (daemons.every(({ startedAtMs }) => startedAtMs > sinceMs)) return;
  for (const { id, minCu, maxCu, suspendTimeoutSeconds, createdAtMs } of world.platform.platform
    .world()
    .computes.values()) {
    const isNews = (one: { computeId: string; atMs: number }) => one.computeId === id && one.atMs > sinceMs;
    if (createdAtMs > sinceMs || [...changesOf(world, id), ...bookOf(world).effects].some(isNews)) continue;
    world.reach('knowledge checked');
    const has = String([minCu, maxCu, suspendTimeoutSeconds || 300]);
    const shown = daemons.map(({ parts }) => {
      const { compute } = parts?.fleet.latestEvaluation(id) ?? {};
      return compute && String([compute.minCu, compute.maxCu, compute.suspendTimeoutSeconds || 300]);
    });
    if (!shown.includes(has)) world.violate('daemons know what there is', `${id}: ${shown.join(' or ')}, not ${has}`);
  }
}

async function checkJobs(world: World, daemons: readonly SimDaemon[], files: SimFiles): Promise<void> {
  const queue = daemons.find(({ parts }) => parts)?.parts?.queue;
  if (!queue) return;
  const { people, time } = world;
  // Another daemon may have added one again by the rules of before.
  // Those of the next two rounds stay.
  const stays = rhythmOf(world.plan).resyncMs > MINUTE_MS;
  if (people.doubts.length > 0 || world.plan.daemons > 1 || stays) return;
  const ends = [...people.holds, ...people.freezes].map(({ expiresAtMs }) => expiresAtMs);
  const names = [...world.platform.platform.world().projects.values()].map(({ name }) => name);
  const edges = new Set([...ends, ...names.flatMap((name) => edgesOf(files, name))]);
  for (const id of await queue.delayedIds('boundaries')) {
    const instantMs = Number(/^b-(\d+)$/.exec(id)?.[1]);
    if (Number.isNaN(instantMs) || instantMs < time.now()) continue;
    world.reach('boundary job checked');
    if (![...edges].some((ms) => Math.abs(ms - instantMs) < SECOND_MS)) world.violate('old boundaries are removed', id);
  }
}
