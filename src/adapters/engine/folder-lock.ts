import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:net';

export type FolderLock = { ok: true; release: () => Promise<void> } | { ok: false };

/**
 * Locks a folder for this process, named by its real path. On Linux the lock is an abstract Unix socket: there is no file
 * that a crash could leave behind, the kernel frees it with the process.
 */
export async function lockFolder({ realPath }: { realPath: string }): Promise<FolderLock> {
  const name = createHash('sha256').update(realPath).digest('hex').slice(0, 40);
  const server = createServer((socket) => socket.destroy());
  server.unref();
  const locked = await listen(server, `\0ebb-${name}`);
  if (!locked) return { ok: false };
  return { ok: true, release: () => new Promise((resolve) => server.close(() => resolve())) };
}

function listen(server: Server, path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false);
      else reject(error);
    });
    server.listen(path, () => resolve(true));
  });
}
