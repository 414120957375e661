import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Where a process runs: processes of one place see each other's process ids and abstract sockets. */
export interface Place {
  host: string;
  pid: number;
}

export function thisPlace(): Place {
  return { host: hostId(), pid: process.pid };
}

/**
 * What can be told from here of the process at `other`, which once held what this one wants: on Linux a process of the same
 * place is dead, since the caller holds the folder's socket by now.
 */
export function fateOf(other: Place, here: Place): 'alive' | 'dead' | 'elsewhere' {
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
