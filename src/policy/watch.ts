import type { BigIntStats } from 'node:fs';
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** File systems may give the same time to two changes within this time. */
const FILE_TIME_RESOLUTION_MS = 3_000;

/** Files are read once they have not changed for this long, but at the latest after {@link MAX_WAITS} of these times. */
const UNCHANGED_MS = 200;
const MAX_WAITS = 10;

/** The state of files at a reading. */
interface Stamp {
  /** Equal if nothing has changed. */
  text: string;
  /** By path; only files that exist. */
  files: ReadonlyMap<string, FileStamp>;
  /** The real paths of all folders above the files. */
  folders: ReadonlyMap<string, string>;
  /** True if a file is so new that a later change may not show. */
  isFresh: boolean;
  atMs: number;
}

interface FileStamp {
  /** Equal if the file has not changed. */
  text: string;
  /** The real path. */
  path: string;
  inode: string;
  /** The inode with its size and time. */
  content: string;
  /** When the file or its entry in the folder last changed, milliseconds since the epoch. */
  changedMs: number;
  /** True if the path itself is a link. */
  isLink: boolean;
}

/** Files that have changed from one reading to the next, by their paths. */
export interface FileChanges {
  /** Overwritten, created or deleted: an edit may not be complete. */
  inPlace: readonly string[];
  /** Replaced atomically: by a rename, or by a swapped link. */
  replaced: readonly string[];
}

export interface FileWatch {
  /** True if the files may have changed since the last reading. */
  changed(): Promise<boolean>;
  /** Milliseconds since each file was written; without files behind links. */
  writtenAgoMs(): Promise<ReadonlyMap<string, number>>;
  /** Changes between the last two readings. */
  changes(): FileChanges;
  /**
   * Calls `read`, once more if the files changed meanwhile, and stores their state for {@link FileWatch.changed}. With
   * `waitUntilUnchanged`, it first waits until the files have stopped changing.
   */
  readConsistently<T>(read: () => Promise<T>, options: { waitUntilUnchanged: boolean }): Promise<T>;
}

/**
 * Polls times, sizes and inodes. This detects changes that file system notifications miss: swapped links (ConfigMaps, git-sync),
 * files that an editor replaces, and network file systems.
 */
export function watchFiles({ files }: { files: () => Promise<readonly string[]> }): FileWatch {
  let last: Stamp | undefined;
  let changes: FileChanges = { inPlace: [], replaced: [] };

  const stampNow = async () => stampOf(await files());

  async function stampOnceUnchanged(): Promise<Stamp> {
    let stamp = await stampNow();
    for (let waits = 0; waits < MAX_WAITS; waits += 1) {
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
    async writtenAgoMs() {
      const { files: found, atMs } = await stampNow();
      const direct = [...found].filter(([file, { path }]) => path === resolve(file));
      return new Map(direct.map(([file, { changedMs }]) => [file, Math.max(0, atMs - changedMs)]));
    },
    changes: () => changes,
    async readConsistently(read, { waitUntilUnchanged }) {
      const previous = last;
      const before = waitUntilUnchanged ? await stampOnceUnchanged() : await stampNow();
      const result = await read();
      const after = await stampNow();
      changes = await changesBetween(previous ?? after, after);
      // `last` stays as it was if `read` throws, since the changes must still be read then.
      last = after;
      return after.text === before.text ? result : read();
    },
  };
}

async function changesBetween(before: Stamp, after: Stamp): Promise<FileChanges> {
  const inPlace: string[] = [];
  const replaced: string[] = [];
  if (before.text === after.text) return { inPlace, replaced };
  // Sorted, since the files are stamped concurrently, in any order.
  for (const file of [...new Set([...before.files.keys(), ...after.files.keys()])].sort()) {
    const [old, now] = [before.files.get(file), after.files.get(file)];
    if (old?.text === now?.text) continue;
    const isReplaced =
      old && now ? await isOtherFile(old, now) : isSwapped(file, before, after) || (await isUnchanged(file, before));
    (isReplaced ? replaced : inPlace).push(file);
  }
  return { inPlace, replaced };
}

/** True if a file was replaced. False if the old one still exists in the folder: some editors move it away and write a new one. */
async function isOtherFile(old: FileStamp, now: FileStamp): Promise<boolean> {
  if (old.path !== now.path) return true;
  if (old.inode === now.inode) return false;
  const folder = dirname(now.path);
  const names = await readdir(folder).catch(() => []);
  const inodes = await Promise.all(
    names.map((name) => stat(join(folder, name), { bigint: true }).catch(() => undefined)),
  );
  return !inodes.some((stats) => stats && contentOf(stats) === old.content);
}

/** True for a file that appeared or disappeared with a link: the file itself is a link, or a folder above it is. */
function isSwapped(file: string, before: Stamp, after: Stamp): boolean {
  if ((before.files.get(file) ?? after.files.get(file))?.isLink) return true;
  return foldersAbove(file).some((folder) => {
    const [old, now] = [before.folders.get(folder), after.folders.get(folder)];
    return old !== undefined && now !== undefined && old !== now;
  });
}

/** True for a file that existed before and still does: only the watched paths have changed. */
async function isUnchanged(file: string, { atMs }: Stamp): Promise<boolean> {
  const stats = await stat(file).catch(() => undefined);
  return stats !== undefined && Math.max(stats.ctimeMs, stats.mtimeMs) < atMs - FILE_TIME_RESOLUTION_MS;
}

function foldersAbove(file: string): string[] {
  const folder = dirname(file);
  return folder === file ? [] : [folder, ...foldersAbove(folder)];
}

function inodeOf({ dev, ino }: BigIntStats): string {
  return `${dev} ${ino}`;
}

/** Stays the same if the file is moved. Includes more than the inode, which may be reused. */
function contentOf(stats: BigIntStats): string {
  return `${inodeOf(stats)} ${stats.size} ${stats.mtimeNs}`;
}

async function stampOf(files: readonly string[]): Promise<Stamp> {
  const nowMs = Date.now();
  let isFresh = false;
  const found = new Map<string, FileStamp>();
  const lines = await Promise.all(
    [...new Set(files)].sort().map(async (file) => {
      const [stats, path, isLink] = await Promise.all([
        stat(file, { bigint: true }).catch((error: NodeJS.ErrnoException) => error),
        realpath(file).catch(() => file),
        lstat(file).then(
          (entry) => entry.isSymbolicLink(),
          () => false,
        ),
      ]);
      if (stats instanceof Error) return `${file} ${stats.code}`;
      const { mtimeNs, ctimeNs } = stats;
      const content = contentOf(stats);
      const changedMs = Number((mtimeNs > ctimeNs ? mtimeNs : ctimeNs) / 1_000_000n);
      if (Math.abs(nowMs - changedMs) < FILE_TIME_RESOLUTION_MS) isFresh = true;
      const text = `${file} ${path} ${content} ${ctimeNs}`;
      found.set(file, { text, path, inode: inodeOf(stats), content, changedMs, isLink });
      return text;
    }),
  );
  const above = [...new Set([...found.keys()].flatMap(foldersAbove))];
  const folders = await Promise.all(
    above.map(async (folder) => [folder, await realpath(folder).catch(() => folder)] as const),
  );
  return { text: lines.join('\n'), files: found, folders: new Map(folders), isFresh, atMs: nowMs };
}
