import { appendFile, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseJson } from '../../common/result.ts';
import type { AuditCopy } from '../../ports/audit-copy.ts';

/** The number of rotated files that are kept. Each has the entries of one day, so they cover at least a year. */
const MAX_DAYS = 366;

/** Writes a line of JSON for each entry. At the first entry of a day (UTC) the file of an earlier day is renamed to `PATH.2026-11-22`. */
export function createAuditFile({ path, now }: { path: string; now: () => number }): AuditCopy {
  /** True if the last line is incomplete, because the daemon that wrote it was killed. */
  let isCut = false;
  let lastDay: string | undefined;

  return {
    isReady: () => true,
    async written() {
      const texts = await Promise.all([...(await rotatedFiles(path)).slice(-1), path].map(textOf));
      isCut = !/(^|\n)$/.test(texts.at(-1) ?? '');
      const found = new Map<string, number>();
      for (const line of texts.join('\n').split('\n')) {
        const { id, at } = (parseJson(line) ?? {}) as { id?: unknown; at?: unknown };
        if (typeof id === 'string' && typeof at === 'string') found.set(id, Date.parse(at));
      }
      return found;
    },
    async append(lines) {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const today = dayOf(now());
      lastDay ??= await lastDayOf(path);
      if (lastDay !== undefined && lastDay !== today) await rotate(path, lastDay);
      const text = lines.map(({ document }) => `${JSON.stringify(document)}\n`).join('');
      await appendFile(path, `${isCut ? '\n' : ''}${text}`, { mode: 0o600 });
      isCut = false;
      lastDay = today;
      return true;
    },
  };
}

async function lastDayOf(path: string): Promise<string | undefined> {
  const written = await stat(path).catch(ignoreMissing);
  return written && dayOf(written.mtimeMs);
}

async function rotate(path: string, day: string): Promise<void> {
  // Another process may have renamed it.
  await rename(path, `${path}.${day}`).catch(ignoreMissing);
  for (const old of (await rotatedFiles(path)).slice(0, -MAX_DAYS)) await rm(old, { force: true });
}

/** Oldest first. */
async function rotatedFiles(path: string): Promise<string[]> {
  const names = (await readdir(dirname(path)).catch(ignoreMissing)) ?? [];
  const start = `${basename(path)}.`;
  const rotated = names.filter((name) => name.startsWith(start) && /^\d{4}-\d\d-\d\d$/.test(name.slice(start.length)));
  return rotated.sort().map((name) => join(dirname(path), name));
}

async function textOf(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(ignoreMissing)) ?? '';
}

export function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
