import { maxConnectionsAt } from '../../domain/compute/compute-units.ts';
import type { PostgresBinaries } from './binaries.ts';
import { createDataFolders, serverOwner } from './data-folders.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

/** One real server for each compute that runs. */
export interface ComputeServers {
  /** With as many connections as a compute of `maxCu` has; its data are those of its last run. */
  start(computeId: string, maxCu: number): Promise<void>;
  stop(computeId: string): Promise<void>;
  /** Stops it and deletes its data. */
  remove(computeId: string): Promise<void>;
  socketPath(computeId: string): string | undefined;
  close(): Promise<void>;
}

export async function createComputeServers(binaries: PostgresBinaries): Promise<ComputeServers> {
  const owner = serverOwner();
  const folders = await createDataFolders(binaries, owner);
  const servers = new Map<string, ServerProcess>();
  let closed = false;

  const stop = async (computeId: string): Promise<void> => {
    await servers.get(computeId)?.stop();
    servers.delete(computeId);
  };

  return {
    async start(computeId, maxCu) {
      const server = await startServerProcess({
        postgres: binaries.postgres,
        owner,
        folders: await folders.of(computeId),
        maxConnections: maxConnectionsAt(maxCu),
      });
      servers.set(computeId, server);
      if (closed) await stop(computeId);
    },
    stop,
    async remove(computeId) {
      await stop(computeId);
      await folders.remove(computeId);
    },
    socketPath: (computeId) => servers.get(computeId)?.socketPath,
    async close() {
      closed = true;
      await Promise.all([...servers.keys()].map(stop));
      await folders.removeAll();
    },
  };
}
