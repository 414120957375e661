import { readlink, stat } from 'node:fs/promises';
import { isAbsolute, join, parse, relative, resolve, sep } from 'node:path';
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
    const files = await filesOf(await splitPath(path, cwd));
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

/** A path as it is interpreted: the existing part is literal, and only the rest can be a glob. */
export interface SplitPath {
  /** The part that exists, absolute. */
  base: string;
  /** The segments after it; none if all of it exists. */
  rest: string[];
  isFolder: boolean;
  /** Why `base` can't be looked at. */
  unreadable?: string;
}

/** Splits a path after its longest part that exists, so that `[` or `(` in the name of a folder is no glob. */
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

/** The files of one path, or its problem. */
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

/** The files that match below a folder, or the folders; absolute. */
export async function matching(pattern: string, cwd: string, { folders = false } = {}): Promise<string[]> {
  const only = folders ? { onlyDirectories: true } : { onlyFiles: true };
  const found = await glob(pattern, { cwd, ...only, dot: false, expandDirectories: false });
  return found.map((path) => resolve(cwd, path));
}

/** As many links as the kernel follows in one path. */
const MOST_LINKS = 40;

interface RealPath {
  /** Without any link; undefined if it can't be resolved. */
  real: string | undefined;
  /** The real place of each link on the way, in order. */
  links: readonly string[];
}

export type ResolveRealPath = (path: string) => Promise<RealPath>;

/** Resolves absolute paths link by link. Each link is read once, so that all answers of one resolver fit together. */
export function realPathResolver(): ResolveRealPath {
  const targets = new Map<string, ReturnType<typeof readTarget>>();
  const targetOf = (place: string) => {
    const known = targets.get(place) ?? readTarget(place);
    targets.set(place, known);
    return known;
  };
  return async (path) => {
    const links: string[] = [];
    let { root: place } = parse(path);
    const segments = segmentsOf(path.slice(place.length));
    for (let segment = segments.shift(); segment !== undefined; segment = segments.shift()) {
      const next = join(place, segment);
      const target = await targetOf(next);
      if (target === null || links.length > MOST_LINKS) return { real: undefined, links };
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

/** The target of a link as it is written there; undefined for what is no link, null if it can't be read. */
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

/** True for a folder itself, and for everything below it; both are paths of the same kind. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
