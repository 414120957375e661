import type { Platform } from '../platform.ts';
import type { WorldEvent } from '../world/entities.ts';
import type { ComputeServers } from './compute-servers.ts';
import { POSTGRES_USER } from './data-folders.ts';
import { type Front, openFront } from './front.ts';

/** The doors of all computes. */
export interface Fronts {
  open(computeId: string): Promise<void>;
  effectivePolicies(event: Extract<WorldEvent, { type: 'clients' }>): void;
  urlOf(computeId: string): string | undefined;
  /** How many clients found no place on the compute's server. */
  refusedOf(computeId: string): number | undefined;
  close(computeId: string): Promise<void>;
  closeAll(): Promise<void>;
  /** The computes whose server is being stopped: whose sessions end now was cut off. */
  stopping: Set<string>;
}

export function createFronts(platform: Platform, servers: ComputeServers): Fronts {
  const fronts = new Map<string, Front>();
  const stopping = new Set<string>();
  const close = async (computeId: string): Promise<void> => {
    const front = fronts.get(computeId);
    fronts.delete(computeId);
    await front?.close();
  };
  return {
    stopping,
    async open(computeId) {
      if (fronts.has(computeId)) return;
      const front = await openFront({
        computeId,
        platform,
        socketPath: () => servers.socketPath(computeId),
        isStopping: () => stopping.has(computeId),
      });
      fronts.set(computeId, front);
    },
    effectivePolicies: (event) => fronts.get(event.computeId)?.effectivePolicies(event),
    urlOf(computeId) {
      const port = fronts.get(computeId)?.port;
      return port === undefined ? undefined : `postgres://${POSTGRES_USER}@127.0.0.1:${port}/postgres`;
    },
    refusedOf: (computeId) => fronts.get(computeId)?.refused(),
    close,
    closeAll: async () => {
      await Promise.all([...fronts.keys()].map(close));
    },
  };
}
