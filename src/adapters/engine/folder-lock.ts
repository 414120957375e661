import { createHash, randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, readlinkSync, rmSync, statSync, utimesSync, writeSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** The heartbeat file, within the folder. */
const LOCK_FILE = 'lock';

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
  const heartbeat = await startHeartbeat({ path: join(realPath, LOCK_FILE), onLost });
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

/** The holder touches the file this often; a newcomer from elsewhere watches it for longer before it calls the holder dead. */
const BEAT_MS = 1000;
const WATCH_MS = 4000;
/** A file untouched for longer needs no watching. */
const LONG_DEAD_MS = 60_000;

type Heartbeat = { ok: true; stop: () => void } | { ok: false };

interface HeartbeatOptions {
  /** The file; made here, removed by `stop`. */
  path: string;
  /** Called once if another process has taken the file, as can happen after a sleep. */
  onLost(): void;
}

/**
 * A lock for cases that no kernel lock covers: a container that shares the folder, or a system without abstract sockets. A file that is
 * touched every second belongs to a living process; any other may be taken.
 */
export async function startHeartbeat({ path, onLost }: HeartbeatOptions): Promise<Heartbeat> {
  const id = randomUUID();
  const text = JSON.stringify({ id, ...thisPlace() });
  if (!create(path, text)) {
    if (await isAlive(path)) return { ok: false };
    rmSync(path, { force: true });
    // Two newcomers may both have found the holder dead; only one of them makes the new file.
    if (!create(path, text)) return { ok: false };
  }
  const timer = setInterval(() => {
    if (read(path)?.id === id) {
      touch(path);
      return;
    }
    clearInterval(timer);
    onLost();
  }, BEAT_MS);
  timer.unref();
  return {
    ok: true,
    stop: () => {
      clearInterval(timer);
      if (read(path)?.id === id) rmSync(path, { force: true });
    },
  };
}

async function isAlive(path: string): Promise<boolean> {
  const known = read(path);
  const fate = known === undefined ? 'elsewhere' : fateOf(known, thisPlace());
  if (fate !== 'elsewhere') return fate === 'alive';
  const touched = touchedAtMs(path);
  if (touched === undefined) return false;
  if (Date.now() - touched > LONG_DEAD_MS) return false;
  await wait(WATCH_MS);
  return touchedAtMs(path) !== touched;
}

/** The id of the process that holds a folder; undefined if none holds it, or if its holder was killed a minute ago or earlier. */
export function lockHolder(folder: string): number | undefined {
  const path = join(folder, LOCK_FILE);
  const isTouched = Date.now() - (touchedAtMs(path) ?? 0) <= LONG_DEAD_MS;
  return isTouched ? read(path)?.pid : undefined;
}

/** False if the file is there already. */
function create(path: string, text: string): boolean {
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      writeSync(file, text);
    } finally {
      closeSync(file);
    }
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function read(path: string): ({ id: string } & Place) | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // Removed this very moment: the next beat sees it.
  }
}

function touchedAtMs(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

/** Processes in the same place see each other's process ids and abstract sockets. */
interface Place {
  host: string;
  pid: number;
}

function thisPlace(): Place {
  return { host: hostId(), pid: process.pid };
}

/**
 * The state of the process at `other`, which held the folder before. On Linux a process of the same place is dead, since the caller holds
 * the folder's socket by now.
 */
function fateOf(other: Place, here: Place): 'alive' | 'dead' | 'elsewhere' {
  if (other.host !== here.host) return 'elsewhere';
  if (process.platform === 'linux' || other.pid === here.pid) return 'dead';
  return isRunning(other.pid) ? 'alive' : 'dead';
}

/** On Linux the network namespace of this boot, which is how far an abstract socket is seen; elsewhere the host's name. */
function hostId(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/net')}`;
  } catch {
    return hostname();
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
