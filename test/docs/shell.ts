/** One bash that is given command after command, as a reader types them. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { on } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { inject } from 'vitest';
import { inQuotes } from '../../src/domain/notifications/coming-change.ts';
import { makeFolder } from '../support/platform.ts';

export interface Shell {
  /** What the command prints on both streams, without the last newline, and its exit code. */
  run(command: string): Promise<{ output: string; status: number }>;
  /** Ends the shell and all that was started in it, and deletes its folder. */
  close(): Promise<void>;
}

type Bash = ChildProcessByStdio<Writable, Readable, null>;

/** No command prints this; the exit code is between the two. */
const MARK = '<<<end of the command>>>';
const END = new RegExp(`${MARK}(\\d+)${MARK}\n$`);

/** In an empty folder, with the built `ebb` on the PATH. */
export async function startShell(env: Record<string, string> = {}): Promise<Shell> {
  const folder = await makeFolder();
  const [bin, work] = [join(folder.path, 'bin'), join(folder.path, 'work')];
  await Promise.all([mkdir(bin), mkdir(work)]);
  // A reader has the executable bit from `npm run build`; the build of the tests has none.
  await writeFile(join(bin, 'ebb'), `#!/bin/sh\nexec node ${inject('ebbMain')} "$@"\n`, { mode: 0o755 });
  await symlink(process.execPath, join(bin, 'node'));
  const child = spawn('bash', ['--noprofile', '--norc'], {
    cwd: work,
    detached: true,
    env: { PATH: `${bin}:${process.env.PATH}`, HOME: work, NODE_ENV: 'test', LC_ALL: 'C.UTF-8', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  return { run: (command) => answer(child, command), close: () => close(child, folder.remove) };
}

async function answer({ stdin, stdout }: Bash, command: string): Promise<{ output: string; status: number }> {
  stdin.write(`eval ${inQuotes(command)} </dev/null 2>&1; printf '${MARK}%d${MARK}\\n' $?\n`);
  let text = '';
  for await (const [chunk] of on(stdout, 'data', { close: ['end'] })) {
    text += chunk;
    const end = END.exec(text);
    if (end) return { output: text.slice(0, end.index).replace(/\n$/, ''), status: Number(end[1]) };
  }
  throw new Error(`bash has ended: ${command}\n${text}`);
}

async function close(child: Bash, removeFolder: () => Promise<void>): Promise<void> {
  const ended = new Promise((resolve) => child.once('close', resolve));
  if (child.pid !== undefined && child.exitCode === null) {
    // The group: the shell and what it left in the background.
    process.kill(-child.pid, 'SIGKILL');
    await ended;
  }
  await removeFolder();
}
