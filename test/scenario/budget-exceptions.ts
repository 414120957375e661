/**
 * What comes before the steps of a budget in a simulated month: headroom on connections, a hold, and a person's change. Each concerns a
 * project of its own, so that the others show what steps alone do.
 */

import type { Compute, Size } from '../../src/domain/compute/compute.ts';
import { CONNECTION_PROFILES } from '../../src/domain/connections/connection-profile.ts';
import type { ConnectionHistory } from '../../src/domain/connections/connections.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { DAY_MS } from '../../src/domain/time/units.ts';
import type { ConnectionSample } from '../../src/ports/store.ts';
import { aHeadroom, aHold } from '../support/builders.ts';
import type { Dice } from '../support/dice.ts';
import { aSelector } from '../support/selectors.ts';

const SLOT_MS = 15 * 60_000;
const HEADROOM = 1;
const HELD = 2;
const BY_HAND = 3;

/** Up to 4 CU, 80 % of the connections, back after half an hour. */
export const HEADROOM_POLICY = aHeadroom({
  ...{ select: aSelector({ projects: [`dev-${HEADROOM}`] }), connections: 'counts' },
  ...{ targetShare: 0.8, maxCu: 4, scaleDownAfterMs: 2 * SLOT_MS },
});

export const PROFILE = CONNECTION_PROFILES.specification;

/** Clients of a CU of demand; there are never so many that 4 CU refuse them. */
const PER_CU = 350;
/** More don't come in a slot: a daemon counts every 30 s, and so has raised before they are more than a size accepts. */
const MORE_IN_A_SLOT = Math.floor(0.2 * PROFILE.maxConnections({ minCu: 0.25, maxCu: 1 }));
const MOST = Math.floor(0.75 * PROFILE.maxConnections({ minCu: 0.25, maxCu: 4 }));

/** What makes a project differ from those that only the budget concerns; instants are those of the simulation. */
export interface Exceptions {
  /** Whether only steps change it. */
  isPlain: boolean;
  holds: readonly Hold[];
  /** The connections of the last slots, oldest first; absent where nobody counts. */
  samples?: ConnectionSample[];
  /** When a person sets which size. */
  byHand: readonly { atMs: number; size: Size }[];
}

export function exceptionsOf(index: number, projectId: string, fromMs: number, dice: Dice) {
  const someDay = (first: number, last: number) => fromMs + (first + dice.uniform() * (last - first)) * DAY_MS;
  const slotOf = (ms: number) => ms - (ms % SLOT_MS);
  const heldFromMs = slotOf(someDay(20, 27));
  const hold = aHold({
    ...{ projectId, computeId: `ep-${index}`, size: { minCu: 0.25, maxCu: 2 } },
    ...{ createdAtMs: heldFromMs, expiresAtMs: heldFromMs + 2 * DAY_MS },
  });
  const byHand = [someDay(8, 18), someDay(19, 28)].map((ms, turn) => ({
    atMs: slotOf(ms),
    size: { minCu: 0.25, maxCu: turn === 0 ? 2 : 3 },
  }));
  const exceptions: Exceptions = {
    isPlain: ![HEADROOM, HELD, BY_HAND].includes(index),
    holds: index === HELD ? [hold] : [],
    byHand: index === BY_HAND ? byHand : [],
    ...(index === HEADROOM && { samples: [] }),
  };
  return exceptions;
}

/** Counts the clients of a slot, and gives how many are refused that a size without steps would have taken. */
export function countClients({ samples }: Exceptions, compute: Compute, wantedCu: number, nowMs: number): number {
  if (!samples) return 0;
  const before = samples.at(-1)?.connections ?? 0;
  const wanted = Math.min(MOST, Math.floor(wantedCu * PER_CU));
  const connections = compute.state === 'idle' ? 0 : Math.min(wanted, before + MORE_IN_A_SLOT);
  samples.push({ atMs: nowMs + SLOT_MS, connections, sinceMs: nowMs });
  if (samples.length > 8) samples.shift();
  return Math.max(0, connections - PROFILE.maxConnections(compute));
}

export function connectionsOf({ samples }: Exceptions): ConnectionHistory | undefined {
  return samples && new Map([['counts', samples]]);
}

/** The largest size that may be there in spite of the last step: by its hold, its connections or a respected change of a person. */
export function mayHaveCu({ holds, samples }: Exceptions, record: ComputeRecord, limitCu: number, nowMs: number) {
  const held = holds.find(({ createdAtMs, expiresAtMs }) => createdAtMs <= nowMs && nowMs < expiresAtMs);
  const peak = Math.max(0, ...(samples ?? []).slice(-4).map(({ connections }) => connections));
  const isFull = peak > 0.8 * PROFILE.maxConnections({ minCu: 0.25, maxCu: limitCu });
  return Math.max(limitCu, held?.size?.maxCu ?? 0, isFull ? 4 : 0, record.manual?.size?.fields.maxCu ?? 0);
}
