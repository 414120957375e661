import type { Platform } from './platform.ts';
import type { Outcome } from './world/outcome.ts';

export interface Arrival {
  computeId: string;
  connections: number;
  forMs?: number;
  reconnects: boolean;
}

/** Those who connect to computes, as `/_emulator` sends them. */
export interface Clients {
  arrive(arrival: Arrival): Promise<Outcome>;
  /** So many leave, the oldest first; without a number, all. */
  leave(computeId: string, connections?: number): Promise<Outcome>;
  /** Where anybody can connect to a compute; undefined if computes are no real servers. */
  urlOf(computeId: string): string | undefined;
  /** How many clients found no place on its server; undefined if computes are no real servers. */
  refusedOf(computeId: string): number | undefined;
}

/** Clients that exist in the world only. */
export function createWorldClients(platform: Platform): Clients {
  return {
    arrive: async (arrival) => platform.run({ kind: 'connect', ...arrival }),
    leave: async (computeId, connections) =>
      platform.run({ kind: 'disconnect', computeId, ...(connections === undefined ? {} : { connections }) }),
    urlOf: () => undefined,
    refusedOf: () => undefined,
  };
}
