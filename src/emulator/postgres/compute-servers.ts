import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { maxConnectionsAt } from '../../domain/compute/compute-units.ts';
import {
  createDataFolders,
  type Owner,
  type PostgresBinaries,
  type ServerFolders,
  serverOwner,
} from './data-folders.ts';

/** A real server for each running compute. */
export interface ComputeServers {
  /** Starts with the data of the last run, and the `max_connections` of a compute of `maxCu`. */
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
  let isClosed = false;

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
      if (isClosed) await stop(computeId);
    },
    stop,
    async remove(computeId) {
      await stop(computeId);
      await folders.remove(computeId);
    },
    socketPath: (computeId) => servers.get(computeId)?.socketPath,
    async close() {
      isClosed = true;
      await Promise.all([...servers.keys()].map(stop));
      await folders.removeAll();
    },
  };
}

interface ServerProcess {
  socketPath: string;
  /** A fast shutdown, which cuts sessions off. */
  stop(): Promise<void>;
}

interface ServerOptions {
  postgres: string;
  owner: Owner | undefined;
  folders: ServerFolders;
  maxConnections: number;
}

const STOP_GRACE_MS = 5_000;
const READY = /ready to accept connections/;
/** Reserved for the superuser, as on the platform. */
const RESERVED_CONNECTIONS = 7;

/** The shell stops the server when the pipe from this process ends, so that servers don't survive a killed emulator. */
const SUPERVISOR = `
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(cat <&3 >/dev/null 2>&1; kill -INT "$server" 2>/dev/null) >/dev/null 2>&1 &
exec 3<&-
wait "$server"`;

function settings({ folders, maxConnections }: ServerOptions): string[] {
  const parameters = {
    listen_addresses: '',
    unix_socket_directories: folders.socket,
    max_connections: maxConnections,
    superuser_reserved_connections: RESERVED_CONNECTIONS,
    // These data may be lost, and there may be many servers.
    fsync: 'off',
    shared_buffers: '16MB',
    max_locks_per_transaction: 10,
    max_wal_senders: 0,
    wal_level: 'minimal',
  };
  return ['-D', folders.data, ...Object.entries(parameters).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

function waitUntilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let written = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      written = `${written}${chunk.toString()}`.slice(-4_000);
      if (READY.test(written)) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`postgres did not start: ${written.trim().split('\n').at(-1)}`)));
  });
}

/** Starts a server and waits until it accepts connections. Rejects with its last line of output if it doesn't. */
async function startServerProcess(options: ServerOptions): Promise<ServerProcess> {
  const { postgres, owner, folders } = options;
  const child = spawn('sh', ['-c', SUPERVISOR, 'sh', postgres, ...settings(options)], {
    ...owner,
    cwd: folders.socket,
    stdio: ['pipe', 'ignore', 'pipe'],
    // In its own process group, Ctrl-C reaches only the emulator, which then stops its servers.
    detached: true,
  });
  const ended = once(child, 'exit');
  child.stdin.on('error', () => undefined);
  child.once('exit', () => child.stdin.end());
  await waitUntilReady(child);
  return {
    socketPath: join(folders.socket, '.s.PGSQL.5432'),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.stdin.end();
      const kill = setTimeout(() => killGroup(child), STOP_GRACE_MS);
      await ended;
      clearTimeout(kill);
    },
  };
}

function killGroup(child: ChildProcess): void {
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGQUIT');
}
