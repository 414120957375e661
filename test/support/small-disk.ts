/** A disk of its own that is full when a test wants it to be: a tmpfs, which only root may mount. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from './embedded-folder.ts';

export interface SmallDisk {
  path: string;
  /** Leaves no room for another byte. */
  fill(): void;
  makeRoom(): Promise<void>;
  resize(megabytes: number): void;
  remove(): Promise<void>;
}

/** Why no disk can be mounted here; undefined where it can. */
export function cannotMount(): string | undefined {
  if (process.platform !== 'linux') return 'needs Linux';
  if (process.getuid?.() !== 0) return 'only root may mount a tmpfs';
  try {
    execFileSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'a tmpfs cannot be mounted here';
  }
}

export async function smallDisk(megabytes: number): Promise<SmallDisk> {
  const folder = await temporaryFolder();
  const { path } = folder;
  const filling = join(path, 'filling');
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path]);
  return {
    path,
    fill() {
      try {
        writeFileSync(filling, Buffer.alloc(megabytes * 1024 * 1024));
      } catch {
        // As many as there was room for.
      }
    },
    makeRoom: () => rm(filling, { force: true }),
    resize: (now) => void execFileSync('mount', ['-o', `remount,size=${now}m`, path]),
    async remove() {
      execFileSync('umount', ['-l', path]);
      await folder.remove();
    },
  };
}
