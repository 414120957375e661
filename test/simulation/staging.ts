/** Rules about approval: what restarts many computes at once waits for a person, and nothing else does. */

import { stagedSets } from '../../src/app/rollout/write-permission.ts';
import type { Compute as EmulatedCompute } from '../../src/emulator/world/entities.ts';
import {
  bookOf,
  changesOf,
  computeNow,
  freezesNow,
  holdsNow,
  namesOf,
  SECOND_MS,
  wasForgotten,
  wasReplaced,
} from './book.ts';
import type { SimDaemon } from './daemon.ts';
import { isSmaller } from './guards.ts';
import { selects, wanted } from './oracle.ts';
import type { SimFiles } from './policies.ts';
import { ALL_TROUBLES, hadTrouble } from './rollout.ts';
import { filesNow, isDoubted, type World } from './world.ts';

/** More computes, and a greater share of them, may not be restarted at once without approval. */
const FEW = 5;
const FEW_SHARE = 0.3;

/** After these, daemons may know another fleet for a while. */
const FLEET_CHANGES: ReadonlySet<string> = new Set(['create_compute', 'delete_compute', 'rename']);

/** What a compute does is known after so long, in milliseconds. */
const KNOWN_MS = 150 * SECOND_MS;

/** A set is counted so long before it is registered at most, in milliseconds, and at other moments by clocks that are apart. */
const COUNTED_MS = [-15, -10, -5, -2, 0, 3].map((seconds) => seconds * SECOND_MS);

/** A person approves what waits, and whatever they approve counts for so long; milliseconds. */
const APPROVED_MS = 120 * SECOND_MS;

/** What was approved counts within this time, in milliseconds: a round in which its restarts are announced, and the next one. */
const TAKEN_MS = 27 * SECOND_MS;

/** The settings let a policy restart half of its computes at once, and ebb always a few; a restart takes so long, in milliseconds. */
const AT_ONCE = 0.5;
const FEW_AT_ONCE = 5;
const RESTARTING_MS = 5 * SECOND_MS;

/** False if a daemon may know another fleet than there is. */
function isFleetKnown({ faults, time }: World): boolean {
  const sinceMs = time.now() - KNOWN_MS;
  return !faults.some(
    ({ kind, untilMs }) => (kind === 'api_stale' || kind === 'api_hides_project') && untilMs > sinceMs,
  );
}

/** A set waits for approval only if it may restart more than a few: sleeping computes don't count. */
export function checkStaged(world: World, { parts }: SimDaemon): void {
  if (!parts || !isFleetKnown(world)) return;
  const nowMs = world.time.now();
  const mayBeAwake = [...world.platform.platform.world().computes.values()].filter(
    ({ state, suspendedAtMs = nowMs }) => state !== 'idle' || suspendedAtMs > nowMs - KNOWN_MS,
  );
  for (const { hash, impact } of stagedSets(parts)) {
    world.reach('staged set checked');
    const approvedAtMs = world.people.approved.get(hash) ?? nowMs;
    if (approvedAtMs < nowMs - TAKEN_MS && !hadTrouble(world, ALL_TROUBLES, nowMs - 2 * TAKEN_MS))
      world.violate('what was approved counts', `${hash}: approved ${(nowMs - approvedAtMs) / 1000} s ago`);
    if (mayBeAwake.length <= FEW)
      world.violate('few restarts need no approval', `${hash}: ${impact.disconnected}, ${mayBeAwake.length} are awake`);
  }
}

/** Called when a daemon says that a set waits: it has counted each compute, and those that are restarted. */
export function checkCounted(
  world: World,
  who: string,
  { owner, disconnected, computes }: { owner?: string; disconnected: number; computes: number },
): void {
  const nowMs = world.time.now();
  const isNear = ({ do: what, atMs }: { do: string; atMs: number }) =>
    FLEET_CHANGES.has(what) && Math.abs(nowMs - atMs) < KNOWN_MS;
  if (!isFleetKnown(world) || world.plan.actions.some(isNear)) return;
  const name = (projectId: string) => namesOf(world, projectId)[0] ?? '';
  const all = [...world.platform.platform.world().computes.values()];
  const own = owner === undefined ? all : all.filter(({ projectId }) => name(projectId).startsWith('web-'));
  const awake = own.filter(({ state, suspendedAtMs = nowMs }) => state !== 'idle' || suspendedAtMs > nowMs - KNOWN_MS);
  const text = `${who}: ${disconnected} of ${computes} by ${owner ?? 'no team'}`;
  world.reach('counted set checked');
  if (disconnected > computes || disconnected <= FEW || disconnected <= FEW_SHARE * computes)
    world.violate('few restarts need no approval', text);
  // A project that could not be read is not counted.
  const isAllRead = !hadTrouble(world, ALL_TROUBLES, nowMs - 60 * SECOND_MS);
  if (computes > own.length || (isAllRead && computes < own.length))
    world.violate('sets are counted rightly', `${text}: there are ${own.length}`);
  if (disconnected > awake.length) world.violate('sets are counted rightly', `${text}: ${awake.length} are awake`);
  const { platform, web } = world.files.versions;
  const candidates = platform.slice(-2).flatMap(({ policies }) => policies ?? []);
  const counts =
    candidates.length === 0 || owner !== undefined
      ? [0]
      : platform.slice(-2).map(({ policies }) => {
          const files = { platform: policies ?? [], web: web.at(-1)?.policies ?? [] };
          return all.filter((compute) => isRestarted(world, compute, files)).length;
        });
  if (disconnected < Math.min(...counts)) world.violate('sets are counted rightly', `${text}: ${counts} are restarted`);
}

/** Called when the group has a set that it did not have before: nobody has approved it, so it restarts only a few at once. */
export function checkApproved(world: World, who: string, files: SimFiles): void {
  const { people, time, platform } = world;
  const nowMs = time.now();
  if (people.approvals.some((atMs) => atMs > nowMs - APPROVED_MS) || !isFleetKnown(world)) return;
  const all = [...platform.platform.world().computes.values()];
  const restarted = all.filter((compute) => isRestarted(world, compute, files));
  world.reach('unapproved set checked');
  if (restarted.length > FEW && restarted.length > FEW_SHARE * all.length)
    world.violate('many restarts wait for approval', `${who}: ${restarted.map(({ id }) => id).join(', ')}`);
}

/** True if the files, and nothing else, restart a compute for certain. Those of the team are counted by themselves, and left out. */
function isRestarted(world: World, compute: EmulatedCompute, files: SimFiles): boolean {
  const { people, time, plan } = world;
  const { id: computeId, projectId, state, startedAtMs = Number.POSITIVE_INFINITY, createdAtMs } = compute;
  const nowMs = time.now();
  const names = namesOf(world, projectId);
  const [projectName = ''] = names;
  const isKnown = state === 'active' && Math.max(startedAtMs, createdAtMs) < nowMs - KNOWN_MS && names.length === 1;
  const isOwn = (one: { computeId: string }) => one.computeId === computeId;
  const isPeoples =
    holdsNow(world, computeId).length > 0 ||
    freezesNow(world, projectId).length > 0 ||
    isDoubted(world, computeId) ||
    changesOf(world, computeId).length > 0 ||
    people.restores.some(isOwn) ||
    bookOf(world).harms.some(isOwn) ||
    bookOf(world).effects.some((one) => isOwn(one) && one.atMs > nowMs - KNOWN_MS);
  if (!isKnown || isPeoples || projectName.startsWith('web-') || wasForgotten(world, computeId)) return false;
  const { minCu, maxCu, suspendTimeoutSeconds } = compute;
  const baseline = { size: [minCu, maxCu] as const, suspendSeconds: suspendTimeoutSeconds };
  return COUNTED_MS.every((ms) => {
    const { size, frozen } = wanted(files, { computeId, projectName, baseline }, [], nowMs + ms);
    const isOther = size !== null && String(size) !== String([minCu, maxCu]) && frozen.length === 0;
    return isOther && (plan.disruption.lowerWhen === 'any' || !isSmaller(size, [minCu, maxCu]));
  });
}

/** A policy restarts only half of its computes at once, or a few. */
export function checkAtOnce(world: World, who: string, computeId: string): void {
  const { time, platform } = world;
  const { policy } = bookOf(world).pending.get(computeId) ?? {};
  const files = filesNow(world);
  if (policy === undefined || !files || wasReplaced(world, time.now() - 60 * SECOND_MS)) return;
  const { restarts } = bookOf(world);
  const others = restarts.filter(
    (one) => one.policy === policy && one.computeId !== computeId && one.atMs > time.now() - RESTARTING_MS,
  );
  restarts.push({ computeId, policy, atMs: time.now() });
  const name = policy.split('/').at(-1);
  const own = [...files.platform, ...files.web].find((one) => one.name === name);
  const isOfProject = (id: string) => own !== undefined && namesOf(world, id).some((one) => selects(own, one));
  const all = [...platform.platform.world().computes.values()].filter((one) => isOfProject(one.projectId));
  const under = others.filter((one) => computeNow(world, one.computeId)?.pendingState !== undefined);
  if (all.length === 0) return;
  world.reach('restarts at once checked');
  const most = Math.max(FEW_AT_ONCE, Math.ceil(AT_ONCE * all.length));
  if (new Set(under.map((one) => one.computeId)).size + 1 > most)
    world.violate(
      'only some restart at once',
      `${who}: by ${policy}, of ${all.length}, as ${under.map((one) => one.computeId).join(', ')}`,
    );
}

/** A slot is taken just before the restart that it is for, in milliseconds. */
const SLOT_MS = 60 * SECOND_MS;

/** A restart has a slot, by which daemons count how many there are at once. */
export function checkSlot(world: World, who: string, computeId: string): void {
  const { pending, slots } = bookOf(world);
  const { policy } = pending.get(computeId) ?? {};
  if (policy === undefined || wasForgotten(world, computeId, world.time.now() - SLOT_MS)) return;
  world.reach('slot of a restart checked');
  const takenAtMs = slots.get(`${policy} ${computeId}`) ?? 0;
  if (takenAtMs < world.time.now() - SLOT_MS) world.violate('a restart has a slot', `${who}: by ${policy}`);
}
