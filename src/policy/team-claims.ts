import { readdir } from 'node:fs/promises';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { isDynamicPattern } from 'tinyglobby';
import { haveSameLetters } from '../common/names.ts';
import { filesOf, matching, type SplitPath, shownPath, splitPath } from './find-files.ts';
import type { PolicyProblem } from './problem.ts';
import { isWithin, type ResolveRealPath } from './real-path.ts';
import type { Team } from './teams.ts';

/** Which files a team has by its paths. All places are real ones: no link leads to them, but each may be a link itself. */
export interface TeamClaims {
  team: Team;
  /** Folders of which everything below is the team's. */
  folders: Set<string>;
  /** Single files, and links to files. */
  files: Set<string>;
  /** What its paths match, as it was found. */
  names: Set<string>;
  /** Files to which a link of the team leads. */
  linked: Set<string>;
  /** Files that nobody claims are uncertain in these folders, or if they are among these files. */
  doubtful: Set<string>;
  problems: PolicyProblem[];
}

interface ClaimOptions {
  cwd: string;
  resolveReal: ResolveRealPath;
  /** The real folders that the paths of the policies start from. */
  roots: readonly string[];
}

/** Matches every file of its kind in a folder: who writes that means the folder. */
const ANY_FILE = /^\*+(\.(ya?ml|y\*ml|\{ya?ml,ya?ml\}|\*))?$/;

/** What the paths of a team claim. */
export async function claimsOf(team: Team, options: ClaimOptions): Promise<TeamClaims> {
  const claims: TeamClaims = {
    ...{ team, folders: new Set<string>(), files: new Set<string>(), names: new Set<string>() },
    ...{ linked: new Set<string>(), doubtful: new Set<string>(), problems: [] },
  };
  for (const path of team.policies) {
    const split = await splitPath(path, options.cwd);
    const found = await filesOf(split);
    const files = typeof found === 'string' ? [] : found;
    if (typeof found === 'string') {
      const message = `policies of team ${team.name}: ${found}`;
      claims.problems.push({ code: 'files', file: shownPath(resolve(options.cwd, path), options.cwd), message });
    }
    // A folder is the team's also while no file of it counts. A path that is no glob and not there means no folder.
    if (files.length > 0 || split.rest.length === 0 || isDynamicPattern(split.rest.join('/'))) {
      await claimPath(claims, split, files, options);
    }
    if (files.length === 0) await doubtSimilar(claims, split, options);
    await doubtOtherReading(claims, path, split, options);
  }
  return claims;
}

async function claimPath(claims: TeamClaims, split: SplitPath, found: readonly string[], options: ClaimOptions) {
  const { resolveReal } = options;
  const basePlace = await placeOf(split.base, resolveReal);
  // A link below the base may be the team's to set: it must not make what is elsewhere the team's own.
  const isLinked = async (path: string) => (await resolveReal(path)).links.some((link) => isWithin(basePlace, link));
  const isWhole = await claimFolders(claims, split, options, isLinked);
  for (const file of found) {
    claims.names.add(file);
    const { real } = await resolveReal(file);
    if (real === undefined) continue;
    if (await isLinked(file)) claims.linked.add(real);
    else if (!isWhole) claims.files.add(real);
    if (!isWhole && !(await isLinked(dirname(file)))) claims.files.add(await placeOf(file, resolveReal));
  }
}

/** True if the path means everything below its folders. */
async function claimFolders(
  claims: TeamClaims,
  split: SplitPath,
  { resolveReal, roots }: ClaimOptions,
  isLinked: (path: string) => Promise<boolean>,
): Promise<boolean> {
  const { base, isFolder, rest } = split;
  const { folders, isWhole, isAnyFile } = rest.length > 0 ? await foldersOf(split) : onlyBase(base, isFolder);
  for (const folder of folders) {
    if (folder !== base && (await isLinked(folder))) continue;
    const place = await placeOf(folder, resolveReal);
    if (isWhole) claims.folders.add(place);
    else if (isAnyFile || isStrictlyBelow(roots, place)) claims.doubtful.add(place);
  }
  return isWhole;
}

/** A folder that the policies start from may be shared by file names; one below it is somebody's. */
function isStrictlyBelow(roots: readonly string[], place: string): boolean {
  return roots.some((root) => root !== place && isWithin(root, place));
}

function onlyBase(base: string, isFolder: boolean) {
  return { folders: isFolder ? [base] : [], isWhole: isFolder, isAnyFile: false };
}

/** The folders that a glob means, and whether it means everything below them. */
async function foldersOf({ base, rest }: SplitPath) {
  const segments = segmentsOfGlob(rest.join('/'));
  const last = segments.at(-1) ?? '';
  const isAnyFile = ANY_FILE.test(last);
  if (last !== '**') segments.pop();
  const isDeep = segments.at(-1) === '**';
  while (segments.at(-1) === '**') segments.pop();
  const folders = segments.length === 0 ? [base] : await matching(segments.join('/'), base, { folders: true });
  return { folders, isWhole: isAnyFile && isDeep, isAnyFile };
}

/** The parts of a glob between slashes that stand outside of braces, brackets and parentheses. */
function segmentsOfGlob(glob: string): string[] {
  const segments = [''];
  let depth = 0;
  for (const character of glob) {
    if ('{[('.includes(character)) depth += 1;
    if ('}])'.includes(character)) depth -= 1;
    if (character === '/' && depth <= 0) segments.push('');
    else segments.push(`${segments.pop()}${character}`);
  }
  return segments;
}

/**
 * A folder with glob characters in its name makes a path literal that was a glob before. Who can create it must not set free what the
 * glob has matched until then.
 */
async function doubtOtherReading(claims: TeamClaims, path: string, { base }: SplitPath, options: ClaimOptions) {
  const absolute = resolve(options.cwd, path);
  const { root } = parse(absolute);
  const segments = absolute.slice(root.length).split(sep);
  const firstGlob = segments.findIndex((segment) => isDynamicPattern(segment));
  const fixed = join(root, ...segments.slice(0, Math.max(0, firstGlob)));
  if (firstGlob < 0 || base === fixed || !isWithin(fixed, base)) return;
  const place = await placeOf(fixed, options.resolveReal);
  if (!isStrictlyBelow(options.roots, place)) return;
  for (const file of await matching(segments.slice(firstGlob).join('/'), fixed)) {
    const { real } = await options.resolveReal(file);
    if (real !== undefined) claims.doubtful.add(real);
  }
}

/** Where nothing is at a path of a team, what has the same letters may be meant: `policies/Web` for `policies/web`. */
async function doubtSimilar(
  { doubtful }: TeamClaims,
  { base, rest: [missing = ''] }: SplitPath,
  options: ClaimOptions,
) {
  const entries = await readdir(base).catch(() => []);
  const similar = entries.filter((entry) => entry !== missing && haveSameLetters(entry, missing));
  for (const entry of similar) doubtful.add(await placeOf(join(base, entry), options.resolveReal));
}

/** The path with no link before its last part. */
export async function placeOf(path: string, resolveReal: ResolveRealPath): Promise<string> {
  const { real = dirname(path) } = await resolveReal(dirname(path));
  return join(real, basename(path));
}
