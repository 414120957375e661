/** Rules about refused changes: what the platform has forbidden is not tried again at once. */

import type { WireRequest } from '../../src/adapters/control-api/http-transport.ts';
import { bookOf, SECOND_MS, wasForgotten } from './book.ts';
import type { SimDaemon } from './daemon.ts';
import { placeOf } from './transport.ts';
import type { World } from './world.ts';

/** What was answered with 403 is sent again after a minute, and after a second time once an hour; a little earlier by clocks that are apart. */
const REFUSED_MS = 50 * SECOND_MS;
const REFUSED_AGAIN_MS = 600 * SECOND_MS;

/** Called when the platform has forbidden a change. */
export function noteForbidden(world: World, { path, body }: WireRequest): void {
  const { forbidden } = bookOf(world);
  const before = forbidden.get(path);
  forbidden.set(path, { body, atMs: world.time.now(), count: before && before.body === body ? before.count + 1 : 1 });
}

/** What was forbidden is not tried again at once, unless somebody has released it or records were lost. */
export function checkForbidden(world: World, daemon: SimDaemon, { path, body }: WireRequest): void {
  const before = bookOf(world).forbidden.get(path);
  const computeId = placeOf({ path } as WireRequest)?.computeId;
  if (!before || before.body !== body || computeId === undefined) return;
  const ageMs = world.time.now() - before.atMs;
  const isReleased = world.people.releases.some((one) => one.computeId === computeId && one.atMs > before.atMs);
  world.reach('forbidden change checked');
  if (
    isReleased ||
    wasForgotten(world, computeId, before.atMs) ||
    ageMs > (before.count > 1 ? REFUSED_AGAIN_MS : REFUSED_MS)
  )
    return;
  world.violate(
    'what was forbidden is not tried at once',
    `d${daemon.index} ${path} ${body}: ${ageMs} ms after ${before.count}`,
  );
}
