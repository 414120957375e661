import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { maxConnectionsAt } from '../../domain/compute/compute-units.ts';
import type { PostgresBinaries } from './data-folders.ts';
import { createDataFolders, type Owner, type ServerFolders, serverOwner } from './data-folders.ts';

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

interface ServerProcess {
  /** The socket that accepts connections. */
  socketPath: string;
  /** Ends it fast: its sessions are cut off. */
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
/** As on the platform: kept for the superuser. */
const RESERVED_CONNECTIONS = 7;

/**
 * The shell waits at the end of our pipe: if this process dies, however, the pipe ends, and the server with it. Servers must
 * not survive their emulator.
 */
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
    // Data of these servers may be lost; their memory adds up.
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

/** Starts a server and waits until it accepts connections. Rejects with its last words if it doesn't. */
async function startServerProcess(options: ServerOptions): Promise<ServerProcess> {
  const { postgres, owner, folders } = options;
  const child = spawn('sh', ['-c', SUPERVISOR, 'sh', postgres, ...settings(options)], {
    ...owner,
    cwd: folders.socket,
    stdio: ['pipe', 'ignore', 'pipe'],
    // A group of its own: Ctrl-C on a terminal is for the emulator, which then stops its servers.
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
