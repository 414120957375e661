import { realpath, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** A change within this time of its reading may be followed by one that its file's times don't tell apart. */
const FILE_TIME_RESOLUTION_MS = 3_000;

/** Files that still change are read only once they have not changed for so long, if that happens. */
const UNCHANGED_MS = 200;
const MOST_WAITS = 10;

/** How files were when they were looked at. */
interface Stamp {
  /** Equal if nothing has changed. */
  text: string;
  /** Each file that is there, by its path. */
  files: ReadonlyMap<string, FileStamp>;
  /** True if a later change might look the same. */
  isFresh: boolean;
}

interface FileStamp {
  /** Equal if the file has not changed. */
  text: string;
  /** Another one where the file was replaced, and not written over. */
  identity: string;
  /** True if a link leads to it, which can be swapped. */
  isLinked: boolean;
}

/** Tells whether files have changed since they were read, and reads them as a whole. */
export interface FileWatch {
  changed(): Promise<boolean>;
  /** True if files had changed when they were last read, and each was replaced as a whole: by a rename, or by a link that was swapped. */
  replaced(): boolean;
  /**
   * Calls `read`, once more if the files changed meanwhile. What they were like is remembered for {@link FileWatch.changed}. With `waitUntilUnchanged`
   * it waits first until nobody seems to be writing any more.
   */
  whole<T>(read: () => Promise<T>, options: { waitUntilUnchanged: boolean }): Promise<T>;
}

/**
 * Polls: times, sizes and inodes of whatever the paths lead to. That sees what notifications miss: a symbolic link
 * that is swapped (ConfigMaps, git-sync), a file that is replaced by its editor, and network file systems.
 */
export function watchFiles({ files }: { files: () => Promise<readonly string[]> }): FileWatch {
  let last: Stamp | undefined;
  let wasReplaced = false;

  const stampNow = async () => stampOf(await files());

  async function unchanged(): Promise<Stamp> {
    let stamp = await stampNow();
    for (let waits = 0; waits < MOST_WAITS; waits += 1) {
      await delay(UNCHANGED_MS);
      const before = stamp.text;
      stamp = await stampNow();
      if (stamp.text === before) break;
    }
    return stamp;
  }

  return {
    async changed() {
      return last === undefined || last.isFresh || (await stampNow()).text !== last.text;
    },
    replaced: () => wasReplaced,
    async whole(read, { waitUntilUnchanged }) {
      const before = last;
      last = waitUntilUnchanged ? await unchanged() : await stampNow();
      const result = await read();
      const after = await stampNow();
      const isWhole = after.text === last.text;
      last = after;
      wasReplaced = before !== undefined && isReplaced(before, after);
      return isWhole ? result : read();
    },
  };
}

/** A file that is new makes nothing else incomplete; one that is gone was swapped away only where a link led to it. */
function isReplaced(before: Stamp, after: Stamp): boolean {
  if (before.text === after.text) return false;
  return [...before.files].every(([file, old]) => {
    const now = after.files.get(file);
    return now ? now.text === old.text || now.identity !== old.identity : old.isLinked;
  });
}

async function stampOf(files: readonly string[]): Promise<Stamp> {
  const nowMs = Date.now();
  let isFresh = false;
  const found = new Map<string, FileStamp>();
  const lines = await Promise.all(
    [...new Set(files)].sort().map(async (file) => {
      const [stats, path] = await Promise.all([
        stat(file, { bigint: true }).catch((error: NodeJS.ErrnoException) => error),
        realpath(file).catch(() => file),
      ]);
      if (stats instanceof Error) return `${file} ${stats.code}`;
      const { dev, ino, size, mtimeNs, ctimeNs } = stats;
      const changedMs = Number((mtimeNs > ctimeNs ? mtimeNs : ctimeNs) / 1_000_000n);
      if (Math.abs(nowMs - changedMs) < FILE_TIME_RESOLUTION_MS) isFresh = true;
      const text = `${file} ${path} ${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
      found.set(file, { text, identity: `${path} ${dev} ${ino}`, isLinked: path !== file });
      return text;
    }),
  );
  return { text: lines.join('\n'), files: found, isFresh };
}
