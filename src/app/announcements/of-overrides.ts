/** Notifications about holds and freezes. */

import { countedComputes, firstNames } from '../../common/names.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { Notification } from '../../domain/notifications/notification.ts';
import { describeSelect, type Freeze, mayConcern } from '../../domain/overrides/freezes.ts';
import { describeHold } from '../../domain/overrides/holds.ts';
import { ascending } from '../../domain/sorted.ts';
import { HOUR_MS, isoInstant } from '../../domain/time/units.ts';
import type { StoredOverrides } from '../../ports/store.ts';
import { type OwnedDeps, ownedComputes } from '../fleet/owned-computes.ts';

/** Holds that were set longer ago, such as before an upgrade, are not reported; in milliseconds. */
const NEWS_MS = HOUR_MS;

/** A message names at most this many owners. */
const MAX_OWNERS = 5;

interface OverrideDeps extends OwnedDeps {
  overrides: StoredOverrides;
}

/** Returns a function for messages about all freezes. Their computes are counted again only when the fleet's size changes. */
export function createFreezeNotifications(deps: OverrideDeps): () => Notification[] {
  let cached = new Map<string, { fleetSize: number; notification: Notification }>();
  return () => {
    const fleetSize = [...deps.fleet.evaluatedComputes()].length;
    const entryOf = (freeze: Freeze) => {
      const before = cached.get(freeze.id);
      return before?.fleetSize === fleetSize ? before : { fleetSize, notification: ofFreeze(deps, freeze) };
    };
    cached = new Map(deps.overrides.freezes.map((freeze) => [freeze.id, entryOf(freeze)]));
    return [...cached.values()].map(({ notification }) => notification);
  };
}

/** A message about the whole fleet, which the owners of the freeze's computes get, too. */
function ofFreeze(deps: OverrideDeps, freeze: Freeze): Notification {
  const { id, owner, reason, createdAtMs, expiresAtMs, select } = freeze;
  const { computes, ownerOf } = ownedComputes(deps);
  const concerned = computes.filter(mayConcern(select));
  const byOwner = [...groupBy(concerned, ownerOf)].toSorted(([a], [b]) => ascending(a, b));
  const counts = byOwner.map(([name, owned]) => `${name} ${owned.length}`);
  const owners = counts.length > 1 ? `: ${firstNames(counts, MAX_OWNERS)}` : '';
  const scope = `${describeSelect(freeze)} (${countedComputes(concerned.length)}${owners})`;
  return {
    id: `freeze:${id}`,
    kind: 'freeze',
    atMs: createdAtMs,
    text: `${owner} has frozen ${scope} until ${isoInstant(expiresAtMs)}: ${reason}`,
    concernedOwners: byOwner.map(([name]) => name),
    command: `ebb unfreeze ${id}`,
  };
}

/** The notifications about the last hour's holds, except those by a team's token on its own computes. */
export function holdNotifications(deps: OverrideDeps, nowMs: number): Notification[] {
  const recent = deps.overrides.holds.filter(({ createdAtMs }) => nowMs - createdAtMs < NEWS_MS);
  if (recent.length === 0) return [];
  const { computes, ownerOf } = ownedComputes(deps);
  const byId = new Map(computes.map((compute) => [compute.computeId, compute]));
  return recent.flatMap((hold): Notification[] => {
    const compute = byId.get(hold.computeId);
    const owner = compute && ownerOf(compute);
    if (owner === undefined || hold.teams?.includes(owner)) return [];
    const { id, createdAtMs: atMs, computeId, owner: person, expiresAtMs, reason } = hold;
    const text = `${person} holds ${computeId} (${describeHold(hold)}) until ${isoInstant(expiresAtMs)}: ${reason}`;
    return [{ id: `hold:${id}`, kind: 'hold', atMs, owner, text, command: `ebb release ${computeId}` }];
  });
}
