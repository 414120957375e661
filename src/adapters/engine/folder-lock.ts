import { createHash, randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, readlinkSync, rmSync, statSync, utimesSync, writeSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** The heartbeat file, within the folder. */
const LOCK_FILE = 'lock';

/**
 * Locks a folder for one engine of one process. On Linux the first lock is an abstract Unix socket, which the kernel frees when the process
 * ends. The second lock is a heartbeat file. It also works between containers, which share the folder but not the sockets, and on other
 * systems. `onLost` is called once if the folder was removed, or taken by another container while this process slept.
 */
export async function lockFolder({
  realPath,
  onLost,
}: {
  /** Without links, so that all names of a folder have one lock. */
  realPath: string;
  onLost(): void;
}): Promise<{ ok: true; release: () => Promise<void> } | { ok: false }> {
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

/** Binds the folder's abstract socket, marked by a leading zero byte. Names of sockets are short, hence the hash. */
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

/** The holder touches the file every `BEAT_MS`. A process elsewhere waits `WATCH_MS` for that before it takes the holder for dead. */
const BEAT_MS = 1000;
const WATCH_MS = 4000;
/** A file that was not touched for this long is taken at once. */
const LONG_DEAD_MS = 60_000;

/**
 * Locks by a file at `path`, which `stop` removes. A file that is touched every second belongs to a living process; any other may be taken.
 * `onLost` is called once if another process has taken the file, for example while this process slept.
 */
export async function startHeartbeat({
  path,
  onLost,
}: {
  path: string;
  onLost(): void;
}): Promise<{ ok: true; stop: () => void } | { ok: false }> {
  const id = randomUUID();
  const text = JSON.stringify({ id, ...thisPlace() });
  if (!create(path, text)) {
    if (await isAlive(path)) return { ok: false };
    rmSync(path, { force: true });
    // Another process may have done the same, and have created the file first.
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
  const holder = read(path);
  const state = holder === undefined ? 'elsewhere' : stateOf(holder, thisPlace());
  if (state !== 'elsewhere') return state === 'alive';
  const touched = touchedAtMs(path);
  if (touched === undefined || Date.now() - touched > LONG_DEAD_MS) return false;
  await wait(WATCH_MS);
  return touchedAtMs(path) !== touched;
}

/** The id of the process that holds a folder, or that held it until it was killed less than a minute ago. */
export function lockHolder(folder: string): number | undefined {
  const path = join(folder, LOCK_FILE);
  const isTouched = Date.now() - (touchedAtMs(path) ?? 0) <= LONG_DEAD_MS;
  return isTouched ? read(path)?.pid : undefined;
}

/** False if the file exists. */
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
    // It was just removed, which the next beat notices.
  }
}

function touchedAtMs(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

interface Place {
  /** Processes of one host see each other's process ids and abstract sockets. */
  host: string;
  pid: number;
}

function thisPlace(): Place {
  return { host: hostId(), pid: process.pid };
}

/** The state of an earlier holder. On Linux a holder on this host is dead, since otherwise the caller could not have bound the socket. */
function stateOf(other: Place, here: Place): 'alive' | 'dead' | 'elsewhere' {
  if (other.host !== here.host) return 'elsewhere';
  if (process.platform === 'linux' || other.pid === here.pid) return 'dead';
  return isRunning(other.pid) ? 'alive' : 'dead';
}

/** On Linux the network namespace of this boot, which is the scope of abstract sockets; elsewhere the host's name. */
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
