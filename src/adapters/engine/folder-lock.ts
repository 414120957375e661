import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { startHeartbeat } from './heartbeat-file.ts';

export type FolderLock = { ok: true; release: () => Promise<void> } | { ok: false };

export interface FolderLockOptions {
  /** The folder without links: two names of one folder must lock each other out. */
  realPath: string;
  /** Called once if the lock was lost: the folder was removed, or taken by another container while this process slept. */
  onLost(): void;
}

/**
 * Locks a folder for one engine of one process. On Linux by an abstract Unix socket first: no crash can leave one behind,
 * since the kernel frees it with the process. A heartbeat file keeps out containers that share the folder but not the sockets,
 * and is all there is on other systems.
 */
export async function lockFolder({ realPath, onLost }: FolderLockOptions): Promise<FolderLock> {
  const socket = process.platform === 'linux' ? await bindSocket(realPath) : undefined;
  if (socket === 'taken') return { ok: false };
  const heartbeat = await startHeartbeat({ path: join(realPath, 'lock'), onLost });
  if (!heartbeat.ok) {
    await unbind(socket);
    return { ok: false };
  }
  return {
    ok: true,
    release: async () => {
      heartbeat.stop();
      await unbind(socket);
    },
  };
}

/** Binds the abstract socket (a leading zero byte) that stands for the folder; a socket's name is short, so it is a hash. */
function bindSocket(realPath: string): Promise<Server | 'taken'> {
  const name = createHash('sha256').update(realPath).digest('hex').slice(0, 40);
  const server = createServer((client) => client.destroy()).unref();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve('taken');
      else reject(error);
    });
    server.listen(`\0ebb-${name}`, () => resolve(server));
  });
}

async function unbind(socket: Server | undefined): Promise<void> {
  if (socket !== undefined) await new Promise((resolve) => socket.close(resolve));
}
