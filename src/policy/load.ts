import { open } from 'node:fs/promises';
import { findPolicyFiles, shownPath } from './find-files.ts';
import { POLICY_LIMITS } from './limits.ts';
import { type PolicyFileText, type PolicySetResult, parsePolicyFiles } from './parse.ts';
import type { PolicyProblem } from './problem.ts';

export interface LoadOptions {
  /** Files, folders and globs. */
  paths: readonly string[];
  /** The folder from which relative paths start; that of the process if absent. */
  cwd?: string;
}

/**
 * Loads a policy set from files. All or nothing: what can't be found, read or understood is a problem, and with any problem
 * there is no set. Never throws for anything that is in the files or about them.
 */
export async function loadPolicySet({ paths, cwd = process.cwd() }: LoadOptions): Promise<PolicySetResult> {
  const found = await findPolicyFiles(paths, cwd);
  const texts: PolicyFileText[] = [];
  const problems: PolicyProblem[] = [...found.problems];
  for (const file of found.files) {
    const path = shownPath(file, cwd);
    const read = await readText(file);
    if (read.ok) texts.push({ path, text: read.text });
    else problems.push({ code: read.code, file: path, message: read.message });
  }
  const parsed = parsePolicyFiles(texts);
  if (problems.length === 0) return parsed;
  return { ok: false, problems: [...problems, ...(parsed.ok ? [] : parsed.problems)] };
}

type Read = { ok: true; text: string } | { ok: false; code: PolicyProblem['code']; message: string };

async function readText(file: string): Promise<Read> {
  try {
    return await readBounded(file);
  } catch (error) {
    const code = error instanceof TypeError ? 'not UTF-8' : ((error as NodeJS.ErrnoException).code ?? String(error));
    return { ok: false, code: 'files', message: `cannot be read (${code})` };
  }
}

/** Reads at most the allowed number of bytes, whatever the file system says that there is. */
async function readBounded(file: string): Promise<Read> {
  const handle = await open(file, 'r');
  try {
    if (!(await handle.stat()).isFile()) return { ok: false, code: 'files', message: 'not a file' };
    const buffer = Buffer.alloc(POLICY_LIMITS.fileBytes + 1);
    let size = 0;
    while (size < buffer.length) {
      const { bytesRead } = await handle.read(buffer, size, buffer.length - size);
      if (bytesRead === 0) break;
      size += bytesRead;
    }
    if (size > POLICY_LIMITS.fileBytes) {
      return { ok: false, code: 'limit', message: `larger than ${POLICY_LIMITS.fileBytes / 1024} KiB` };
    }
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, size)) };
  } finally {
    await handle.close();
  }
}
