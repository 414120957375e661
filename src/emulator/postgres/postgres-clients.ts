import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clients, Platform } from '../platform.ts';
import { countConnections } from '../world/connections.ts';
import type { Compute } from '../world/entities.ts';
import { type Outcome, refuse } from '../world/outcome.ts';
import type { PostgresPower } from './power.ts';
import { createRealClients } from './real-clients.ts';

export interface PostgresClients extends Clients {
  close(): void;
}

/** The world sees a client a moment after it has connected; it isn't waited for longer than this. */
const LONGEST_WAIT_MS = 2_000;

function present(compute: Compute): number {
  return countConnections(compute.connected) + countConnections(compute.waiting);
}

/** Clients that are real sessions on real servers. */
export function createPostgresClients(platform: Platform, power: PostgresPower): PostgresClients {
  const clients = createRealClients(platform.clock);

  const seen = async (compute: Compute, isSeen: () => boolean): Promise<Outcome> => {
    const untilMs = performance.now() + LONGEST_WAIT_MS;
    while (!isSeen() && performance.now() < untilMs) await nextTurn();
    return { ok: true, compute, operations: [] };
  };

  return {
    urlOf: power.urlOf,
    refusedOf: power.refusedOf,
    async arrive(arrival) {
      const compute = platform.world().computes.get(arrival.computeId);
      const url = power.urlOf(arrival.computeId);
      if (compute === undefined || url === undefined) return refuse('not_found', 'endpoint not found');
      if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
      const before = present(compute);
      await clients.arrive({ ...arrival, url });
      return seen(compute, () => present(compute) >= before + arrival.connections);
    },
    async leave(computeId, connections) {
      const compute = platform.world().computes.get(computeId);
      if (compute === undefined) return refuse('not_found', 'endpoint not found');
      const before = present(compute);
      const left = clients.leave(computeId, connections);
      return seen(compute, () => present(compute) <= before - left);
    },
    close: clients.close,
  };
}
