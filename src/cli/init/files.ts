import { existsSync } from 'node:fs';
import { mkdir, rename, unlink, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Compute } from '../../domain/compute/compute.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import { UserError } from '../fail.ts';

/** A file that is to be made, relative to the working folder. */
export interface NewFile {
  path: string;
  text: string;
}

/** Refuses to go on where something is there already that would be lost; `instead` says what to do. */
export function refuseIfThere(cwd: string, paths: readonly string[], instead: (them: string) => string): void {
  const there = paths.filter((path) => existsSync(resolve(cwd, path)));
  if (there.length === 0) return;
  const [are, them] = there.length === 1 ? ['is', 'it'] : ['are', 'them'];
  throw new UserError(`${there.join(' and ')} ${are} there already; nothing was done, ${instead(them)}`);
}

/** Writes the files in their order, each whole or not at all. */
export async function writeFiles(cwd: string, files: readonly NewFile[]): Promise<void> {
  for (const { path, text } of files) {
    const file = resolve(cwd, path);
    const unfinished = `${file}.${process.pid}.tmp`;
    try {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(unfinished, text, { flag: 'wx' });
      await rename(unfinished, file);
    } catch (error) {
      await unlink(unfinished).catch(() => {});
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
      throw new UserError(`${path} can not be written (${code}): check the folder and its permissions`);
    }
  }
}

/** The text of `baseline.json`: what every compute has now, in the words of the control API, so that it can be put back. */
export function baselineFile({
  apiUrl,
  computes,
  atMs,
}: {
  apiUrl: string;
  computes: readonly Compute[];
  atMs: number;
}) {
  const baseline = {
    taken_at: isoInstant(atMs),
    api_url: apiUrl,
    computes: computes.map((compute) => ({
      account: compute.account,
      project_id: compute.projectId,
      project_name: compute.projectName,
      compute_id: compute.computeId,
      min_cu: compute.minCu,
      max_cu: compute.maxCu,
      suspend_timeout_seconds: compute.suspendTimeoutSeconds,
    })),
  };
  return `${JSON.stringify(baseline, null, 2)}\n`;
}
