import { utimesSync } from 'node:fs';
import { readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startHeartbeat } from '../../src/adapters/engine/folder-lock.ts';
import { temporaryFolder } from '../support/embedded-folder.ts';

/** What a process in another container has written: neither its sockets nor its process ids are seen from here. */
const ELSEWHERE = JSON.stringify({ id: 'theirs', host: 'another container', pid: 1 });

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function file(): Promise<string> {
  const { path, remove } = await temporaryFolder();
  cleanups.push(remove);
  return join(path, 'lock');
}

const take = (path: string) => startHeartbeat({ path, onLost: () => {} });

describe('the heartbeat file', () => {
  it.concurrent('is not taken while a process elsewhere touches it, and is taken once none does', async () => {
    const path = await file();
    await writeFile(path, ELSEWHERE);
    const beating = setInterval(() => utimesSync(path, new Date(), new Date()), 500);
    cleanups.push(() => clearInterval(beating));
    expect(await take(path)).toEqual({ ok: false });
    expect(await readFile(path, 'utf8')).toBe(ELSEWHERE);
    clearInterval(beating);
    const locked = await take(path);
    expect(locked.ok).toBe(true);
    if (locked.ok) locked.stop();
  });

  it('is taken at once if it was untouched for long, or if its process was of this place and is dead', async () => {
    const path = await file();
    await writeFile(path, ELSEWHERE);
    const longAgo = new Date(Date.now() - 3_600_000);
    await utimes(path, longAgo, longAgo);
    const first = await take(path);
    expect(first.ok).toBe(true);
    const { id, ...place } = JSON.parse(await readFile(path, 'utf8'));
    expect(id).not.toBe('theirs');
    if (first.ok) first.stop();
    await expect(readFile(path)).rejects.toThrow('ENOENT');
    await writeFile(path, JSON.stringify({ id: 'dead', ...place }));
    const second = await take(path);
    expect(second.ok).toBe(true);
    if (second.ok) second.stop();
  });
});
