import { readlink, stat } from 'node:fs/promises';
import { isAbsolute, join, parse, relative, resolve, sep } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { getOrAdd } from '../domain/grouping.ts';
import type { PolicyProblem } from './problem.ts';

export interface FoundFiles {
  /** Absolute paths of files, each once, in no order. */
  files: string[];
  problems: PolicyProblem[];
}

/**
 * The policy files of `paths`: files, folders with every `*.yaml` and `*.yml` below them, and globs. A path without a file is
 * a problem, so that a mistyped path does not become an empty set. Folders and globs skip names that begin with a dot, under
 * which a mounted Kubernetes volume keeps its older versions.
 */
export async function findPolicyFiles(paths: readonly string[], cwd: string): Promise<FoundFiles> {
  const found = new Set<string>();
  const problems: PolicyProblem[] = [];
  for (const path of paths) {
    const files = await filesOf(await splitPath(path, cwd));
    if (typeof files === 'string') problems.push({ code: 'files', file: path, message: files });
    else for (const file of files) found.add(file);
  }
  return { files: [...found], problems };
}

/** The path for messages: relative if it is below the working folder, always with `/`. */
export function shownPath(file: string, cwd: string): string {
  const path = relative(cwd, file);
  const isBelow = path !== '' && !path.startsWith('..') && !isAbsolute(path);
  return (isBelow ? path : file).split(sep).join('/');
}

/** A path whose existing part is literal; only the rest can be a glob. */
export interface SplitPath {
  /** The part that exists, absolute. */
  base: string;
  /** The segments that don't exist. */
  rest: string[];
  isFolder: boolean;
  /** Why the first segment of `rest` can't be read. */
  unreadable?: string;
}

/** Splits a path after its longest existing part, so that `[` or `(` in the name of a folder is no glob. */
export async function splitPath(path: string, cwd: string): Promise<SplitPath> {
  const absolute = resolve(cwd, path);
  const { root } = parse(absolute);
  const segments = absolute.slice(root.length).split(sep).filter(Boolean);
  let base = root;
  let isFolder = true;
  for (const [index, segment] of segments.entries()) {
    const next = join(base, segment);
    const found = await stat(next).catch((error: NodeJS.ErrnoException) => error);
    if (found instanceof Error) {
      const rest = segments.slice(index);
      if (found.code === 'ENOENT' || found.code === 'ENOTDIR') return { base, isFolder, rest };
      return { base, isFolder, rest, unreadable: found.code ?? found.message };
    }
    base = next;
    isFolder = found.isDirectory();
  }
  return { base, isFolder, rest: [] };
}

/** The files of one path, or a problem. */
export async function filesOf({ base, rest, isFolder, unreadable }: SplitPath): Promise<string[] | string> {
  if (unreadable !== undefined) return `cannot be read (${unreadable})`;
  const pattern = rest.join('/');
  if (rest.length > 0) {
    if (!isDynamicPattern(pattern)) return 'no such file or folder';
    const matches = await matching(pattern, base);
    return matches.length > 0 ? matches : 'matches no file';
  }
  if (!isFolder) return [base];
  const matches = await matching('**/*.{yaml,yml}', base);
  return matches.length > 0 ? matches : 'no *.yaml or *.yml in this folder';
}

/** The absolute paths of matching files or folders. */
export async function matching(pattern: string, cwd: string, { folders = false } = {}): Promise<string[]> {
  const only = folders ? { onlyDirectories: true } : { onlyFiles: true };
  const found = await glob(pattern, { cwd, ...only, dot: false, expandDirectories: false });
  return found.map((path) => resolve(cwd, path));
}

/** The limit of the Linux kernel for one path. */
const MAX_LINKS = 40;

interface RealPath {
  /** The path without links; undefined if it can't be resolved. */
  real: string | undefined;
  /** The links that were followed, in order. */
  links: readonly string[];
}

export type ResolveRealPath = (path: string) => Promise<RealPath>;

/** Resolves absolute paths. Each link is read once, so that all answers of one resolver are consistent. */
export function realPathResolver(): ResolveRealPath {
  const targets = new Map<string, ReturnType<typeof readTarget>>();
  const targetOf = (place: string) => getOrAdd(targets, place, () => readTarget(place));
  return async (path) => {
    const links: string[] = [];
    let { root: place } = parse(path);
    const segments = segmentsOf(path.slice(place.length));
    for (let segment = segments.shift(); segment !== undefined; segment = segments.shift()) {
      const next = join(place, segment);
      const target = await targetOf(next);
      if (target === null || links.length > MAX_LINKS) return { real: undefined, links };
      if (target === undefined) {
        place = next;
        continue;
      }
      links.push(next);
      const { root } = parse(target);
      place = root || place;
      segments.unshift(...segmentsOf(target.slice(root.length)));
    }
    return { real: place, links };
  };
}

/** The target of a link; undefined if the place is no link, null if it can't be read. */
async function readTarget(place: string): Promise<string | undefined | null> {
  try {
    return await readlink(place);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EINVAL' ? undefined : null;
  }
}

function segmentsOf(path: string): string[] {
  return path.split(sep).filter((segment) => segment !== '' && segment !== '.');
}

/** True for the folder itself and for everything below it. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
