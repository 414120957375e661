import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** A change within this time of the look at it may be followed by one that its file's times don't tell apart. */
const TELLS_APART_MS = 3_000;

/** Files that still change are read only once they rest for so long, if they do. */
const REST_MS = 200;
const MOST_RESTS = 10;

/** How files were when they were looked at. */
interface Stamp {
  /** Equal if nothing has changed. */
  text: string;
  /** True if a later change might look the same. */
  isFresh: boolean;
}

/** Tells whether files have changed since they were read, and reads them as a whole. */
export interface FileWatch {
  changed(): Promise<boolean>;
  /**
   * Calls `read`, once more if the files changed meanwhile. What they were like is remembered for {@link FileWatch.changed}. `rest`:
   * waits first until nobody seems to be writing any more.
   */
  whole<T>(read: () => Promise<T>, options: { rest: boolean }): Promise<T>;
}

/**
 * Watches by looking: times, sizes and inodes of whatever the paths lead to. That sees what notifications miss: a symbolic link
 * that is swapped (ConfigMaps, git-sync), a file that is replaced by its editor, and network file systems.
 */
export function watchFiles({ files }: { files: () => Promise<readonly string[]> }): FileWatch {
  let last: Stamp | undefined;

  const look = async () => stampOf(await files());

  async function atRest(): Promise<Stamp> {
    let stamp = await look();
    for (let rests = 0; rests < MOST_RESTS; rests += 1) {
      await delay(REST_MS);
      const before = stamp.text;
      stamp = await look();
      if (stamp.text === before) break;
    }
    return stamp;
  }

  return {
    async changed() {
      return last === undefined || last.isFresh || (await look()).text !== last.text;
    },
    async whole(read, { rest }) {
      last = rest ? await atRest() : await look();
      const result = await read();
      const after = await look();
      if (after.text === last.text) return result;
      last = after;
      return read();
    },
  };
}

async function stampOf(files: readonly string[]): Promise<Stamp> {
  const nowMs = Date.now();
  let isFresh = false;
  const lines = await Promise.all(
    [...new Set(files)].sort().map(async (file) => {
      const found = await stat(file, { bigint: true }).catch((error: NodeJS.ErrnoException) => error);
      if (found instanceof Error) return `${file} ${found.code}`;
      const { dev, ino, size, mtimeNs, ctimeNs } = found;
      const changedMs = Number((mtimeNs > ctimeNs ? mtimeNs : ctimeNs) / 1_000_000n);
      if (Math.abs(nowMs - changedMs) < TELLS_APART_MS) isFresh = true;
      return `${file} ${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    }),
  );
  return { text: lines.join('\n'), isFresh };
}
