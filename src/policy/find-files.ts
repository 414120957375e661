import { stat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import type { PolicyProblem } from './problem.ts';

export interface FoundFiles {
  /** Absolute paths of files, each once, in no order. */
  files: string[];
  problems: PolicyProblem[];
}

/**
 * The policy files that `paths` mean: files as they are, folders with every `*.yaml` and `*.yml` below them, globs.
 * A path that means no file is a problem: a mistyped path must not become an empty set. Names that begin with a dot
 * are left out of folders and globs (a mounted Kubernetes volume keeps its older versions there).
 */
export async function findPolicyFiles(paths: readonly string[], cwd: string): Promise<FoundFiles> {
  const found = new Set<string>();
  const problems: PolicyProblem[] = [];
  for (const path of paths) {
    const files = await filesOf(path, cwd);
    if (typeof files === 'string') problems.push({ code: 'files', file: path, message: files });
    else for (const file of files) found.add(file);
  }
  return { files: [...found], problems };
}

/** The path as it is shown: relative to the working folder where it is below it, always with `/`. */
export function shownPath(file: string, cwd: string): string {
  const path = relative(cwd, file);
  const isBelow = path !== '' && !path.startsWith('..') && !isAbsolute(path);
  return (isBelow ? path : file).split(sep).join('/');
}

/** The files of one path, or what is wrong with it. */
async function filesOf(path: string, cwd: string): Promise<string[] | string> {
  const absolute = resolve(cwd, path);
  const found = await stat(absolute).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) {
    if (found.code !== 'ENOENT') return `cannot be read (${found.code ?? found.message})`;
    if (!isDynamicPattern(path)) return 'no such file or folder';
    const matches = await matching(path, cwd);
    return matches.length > 0 ? matches : 'matches no file';
  }
  if (!found.isDirectory()) return [absolute];
  const matches = await matching('**/*.{yaml,yml}', absolute);
  return matches.length > 0 ? matches : 'no *.yaml or *.yml in this folder';
}

async function matching(pattern: string, cwd: string): Promise<string[]> {
  const files = await glob(pattern, { cwd, onlyFiles: true, dot: false, expandDirectories: false });
  return files.map((file) => (isAbsolute(file) ? file : join(cwd, file)));
}
