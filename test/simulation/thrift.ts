/** Rules about what is asked for without need: requests to the control API, slots that are kept. */

import { bookOf, computeNow, SECOND_MS, wasForgotten } from './book.ts';
import type { SimDaemon } from './daemon.ts';
import type { SimPlan } from './plan.ts';
import type { SimFiles } from './policies.ts';
import type { World } from './world.ts';

/** Once nothing has happened for so long, nothing but rounds asks anything; milliseconds. */
export const CALM_MS = 100 * SECOND_MS;

/** In the calm time, per minute: readings of each project, and pages of lists by each daemon; and what each write may cost besides. */
const MOST_READINGS = 4;
const MOST_PAGES = 5;
const MOST_OF_WRITE = 4;

/** A slot is given back within this time after the restart that it was taken for, in milliseconds. */
const KEPT_MS = 90 * SECOND_MS;

/** True if nothing happens, and has happened for a while. */
export function isCalm({ quietFromMs, trialsFromMs }: SimPlan, ms: number): boolean {
  return ms >= quietFromMs + CALM_MS && ms < trialsFromMs;
}

/** Called when a daemon asks the platform for something. */
export function noteRequest(world: World, { method, path }: { method: string; path: string }): void {
  const { plan, time } = world;
  if (method !== 'GET' || !isCalm(plan, time.now())) return;
  const { asked } = bookOf(world);
  const kind = path.includes('/endpoints') ? 'readings' : 'others';
  asked[kind] += 1;
}

/** At the end of the quiet time: no more was asked than rounds and writes explain. Trials have troubles, which need more. */
export function checkThrift(world: World, daemons: readonly SimDaemon[]): void {
  const { plan, time, platform } = world;
  if (time.now() >= plan.trialsFromMs) return;
  const minutes = (time.now() - plan.quietFromMs - CALM_MS) / (60 * SECOND_MS);
  if (minutes < 3) return;
  const { asked, effects } = bookOf(world);
  const writes = effects.filter(({ atMs }) => atMs > plan.quietFromMs + CALM_MS).length;
  const projects = platform.platform.world().projects.size;
  const most = {
    readings: minutes * MOST_READINGS * projects + writes * MOST_OF_WRITE,
    others: minutes * MOST_PAGES * (1 + daemons.length) + writes * MOST_OF_WRITE,
  };
  for (const kind of ['readings', 'others'] as const) {
    world.reach(`requests checked, ${kind}`);
    if (asked[kind] > most[kind])
      world.violate('nothing is asked without need', `${asked[kind]} ${kind} in ${minutes.toFixed(1)} quiet minutes`);
  }
}

/**
 * At the end of the quiet time: slots of restarts are given back, but for those of troubled times, such as trials: a daemon that took one may
 * be gone.
 */
export async function checkSlots(world: World, files: SimFiles): Promise<void> {
  const { plan, time, store } = world;
  if (time.now() >= plan.trialsFromMs) return;
  const isReplaced = plan.actions.some((action) => action.do === 'kill' || action.do === 'stop');
  const isTroubled = isReplaced || world.faults.some(({ kind }) => kind.startsWith('store_') || kind === 'stall');
  const names = [...files.platform.map(({ name }) => name), ...files.web.map(({ name }) => `team-web/${name}`)];
  for (const policy of names) {
    for (const id of await store.current.slotsInUse(policy, time.now())) {
      const last = bookOf(world).effects.findLast(({ computeId }) => computeId === id);
      if (isTroubled && (bookOf(world).slots.get(`${policy} ${id}`) ?? 0) < plan.quietFromMs) continue;
      world.reach('slot checked');
      if (!last || last.atMs > time.now() - KEPT_MS || !computeNow(world, id) || wasForgotten(world, id)) continue;
      world.violate('slots are given back', `${policy} keeps that of ${id}`);
    }
  }
}
