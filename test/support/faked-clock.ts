/** The clock of one process, set by libfaketime while it runs; its monotonic time goes on as it is. */
import { readdirSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface FakedClock {
  /** What a process needs to have this clock. */
  env: Record<string, string>;
  /** Seconds that the clock is ahead of the true time from now on; negative: behind. */
  setAhead(seconds: number): Promise<void>;
  remove(): Promise<void>;
}

/** A clock that is right. Needs the package `faketime`. */
export async function createFakedClock(): Promise<FakedClock> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-clock-'));
  const file = join(folder, 'offset');
  // Replaced as a whole: the process may read it at any time.
  const setAhead = async (seconds: number) => {
    await writeFile(`${file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    await rename(`${file}.new`, file);
  };
  await setAhead(0);
  return {
    env: {
      LD_PRELOAD: libraryPath(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    setAhead,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

function libraryPath(): string {
  const folders = readdirSync('/usr/lib').map((name) => join('/usr/lib', name, 'faketime'));
  for (const folder of folders) {
    try {
      if (readdirSync(folder).includes('libfaketime.so.1')) return join(folder, 'libfaketime.so.1');
    } catch {
      // Not a folder of this machine's architecture.
    }
  }
  throw new Error('libfaketime.so.1 is not under /usr/lib');
}
