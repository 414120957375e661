import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { isDynamicPattern } from 'tinyglobby';
import { haveSameLetters } from '../common/names.ts';
import { comparePaths } from '../domain/policy/policy-set.ts';
import {
  type FoundFiles,
  filesOf,
  isWithin,
  matching,
  type ResolveRealPath,
  realPathResolver,
  type SplitPath,
  shownPath,
  splitPath,
} from './find-files.ts';
import type { PolicyProblem } from './problem.ts';
import type { Team } from './teams.ts';

/** A policy file with its team. */
interface OwnedFile {
  /** The absolute path as found, which may contain links. */
  name: string;
  /** The path without links. */
  real: string;
  team?: Team | undefined;
}

export interface FileOwners {
  files: OwnedFile[];
  problems: PolicyProblem[];
  /** For each team with a link or hard link to a file that would otherwise belong to no team: a path of that file outside the team. */
  takenByLink: Map<Team, string>;
}

export interface OwnerOptions {
  paths: readonly string[];
  teams: readonly Team[];
  cwd: string;
  /** True if `paths` are those of all policies: then a team without a file is a problem. */
  isComplete: boolean;
}

/** One of the paths by which a file was found. */
interface FoundPath {
  name: string;
  /** The path with the links before its last part resolved. */
  place: string;
  /** The links in the path. */
  links: readonly string[];
}

/**
 * Finds the team of each file. Each path is resolved once, so that links that change meanwhile can't contradict each other. A file belongs to the
 * first team whose folder really contains it; without one, to the teams whose links lead to it. It belongs to no team only if no team can have
 * put it there. A file with an uncertain owner is a problem, and is not loaded.
 */
export async function ownersOfFiles(
  found: FoundFiles,
  { paths, teams, cwd, isComplete }: OwnerOptions,
): Promise<FileOwners> {
  const resolveReal = realPathResolver();
  const roots = await realRoots(paths, cwd, resolveReal);
  const claims: TeamClaims[] = [];
  for (const team of teams) claims.push(await claimsOf(team, { cwd, resolveReal, roots }));
  const owners: FileOwners = { files: [], problems: [], takenByLink: new Map() };
  const byReal = new Map<string, FoundPath[]>();
  for (const name of found.files) {
    const { real, links } = await resolveReal(name);
    const path = { name, links, place: await placeOf(name, resolveReal) };
    if (real !== undefined) byReal.set(real, [...(byReal.get(real) ?? []), path]);
    else owners.problems.push(unresolved(path, claims, cwd));
  }
  const hardLinks = await hardLinksOf(claims, byReal.keys());
  for (const [real, foundPaths] of byReal) assignOwner({ real, foundPaths, hardLinks, claims, cwd }, owners);
  owners.problems.push(...found.problems.filter(({ file }) => !isMissedByTeam(file, claims, cwd)));
  for (const claim of claims) owners.problems.push(...missingFiles(claim, owners.files, { cwd, isComplete }));
  return owners;
}

interface FileToAssign {
  real: string;
  foundPaths: readonly FoundPath[];
  hardLinks: ReadonlyMap<string, TeamClaims>;
  claims: readonly TeamClaims[];
  cwd: string;
}

/** Adds a file with its owner, or its problem. */
function assignOwner({ real, foundPaths, hardLinks, claims, cwd }: FileToAssign, owners: FileOwners): void {
  const { files, takenByLink } = owners;
  const sorted = foundPaths.toSorted((a, b) => a.links.length - b.links.length || comparePaths(a.name, b.name));
  const name = sorted[0]?.name ?? real;
  const { linkOfTeam, unowned } = sortByTeam(sorted, claims);
  const report = (file: string, team: Team, message: string) =>
    owners.problems.push({ code: 'team', file: shownPath(file, cwd), message, team: team.name });
  const owner = claims.find((claim) => isOwn(claim, real));
  if (owner) {
    files.push({ name, real, team: owner.team });
    const others = [...linkOfTeam].filter(([claim]) => !isOwn(claim, real));
    const message = `leads to a file of team ${owner.team.name}: remove the link, or copy the file`;
    for (const [{ team }, link] of others) report(link, team, message);
    return;
  }
  const linking = claims.find(({ linked }) => linked.has(real));
  if (linkOfTeam.size === 0 && linking) linkOfTeam.set(linking, name);
  for (const [{ team }, link] of linkOfTeam) {
    files.push({ name: link, real, team });
    if (unowned !== undefined) takenByLink.set(team, unowned);
  }
  if (linkOfTeam.size > 0) return;
  const sameFile = hardLinks.get(real);
  if (sameFile) {
    takenByLink.set(sameFile.team, name);
    return;
  }
  const doubting = claims.filter(({ doubtful }) => [...doubtful].some((place) => isWithin(place, real)));
  for (const { team } of doubting) {
    const fix = 'write its folder or FOLDER/** there, or move the file';
    report(name, team, `may be of team ${team.name}, whose policies in ebb.yaml do not match it: ${fix}`);
  }
  if (doubting.length === 0) files.push({ name, real });
}

/** For each team, the first path that contains something the team controls, and the first path that no team controls. */
function sortByTeam(paths: readonly FoundPath[], claims: readonly TeamClaims[]) {
  const linkOfTeam = new Map<TeamClaims, string>();
  let unowned: string | undefined;
  for (const path of paths) {
    const claim = claims.find((candidate) => controls(candidate, path));
    if (!claim) unowned ??= path.name;
    else if (!linkOfTeam.has(claim)) linkOfTeam.set(claim, path.name);
  }
  return { linkOfTeam, unowned };
}

function isOwn({ folders, files }: TeamClaims, real: string): boolean {
  return files.has(real) || [...folders].some((folder) => folder !== real && isWithin(folder, real));
}

/** True if the path contains something that the team can change. */
function controls({ folders, files, names }: TeamClaims, { name, place, links }: FoundPath): boolean {
  if (names.has(name) || files.has(place)) return true;
  return links.some((link) => files.has(link) || [...folders].some((folder) => isWithin(folder, link)));
}

/** The problem of a broken link, or of a link into an unreadable folder. */
function unresolved(path: FoundPath, claims: readonly TeamClaims[], cwd: string): PolicyProblem {
  const claim = claims.find((candidate) => controls(candidate, path) || isOwn(candidate, path.place));
  const message = 'cannot be resolved to a file: remove the link, or correct where it leads';
  return { code: 'files', file: shownPath(path.name, cwd), message, team: claim?.team.name };
}

/** Files that belong to no team but are hard links to a file of a team, which can change their content. */
async function hardLinksOf(claims: readonly TeamClaims[], reals: Iterable<string>): Promise<Map<string, TeamClaims>> {
  const owners = new Map<string, TeamClaims>();
  const others = new Map<string, string>();
  for (const real of claims.length > 0 ? reals : []) {
    const stats = await stat(real, { bigint: true }).catch(() => undefined);
    if (!stats || stats.nlink < 2n) continue;
    const inode = `${stats.dev} ${stats.ino}`;
    const owner = claims.find((one) => isOwn(one, real) || one.linked.has(real));
    if (owner) owners.set(inode, owner);
    else others.set(real, inode);
  }
  const linked = new Map<string, TeamClaims>();
  for (const [real, inode] of others) {
    const owner = owners.get(inode);
    if (owner) linked.set(real, owner);
  }
  return linked;
}

/** True for a policy path that matches nothing because a team's folder is empty: only the team has that problem. */
function isMissedByTeam(path: string, claims: readonly TeamClaims[], cwd: string): boolean {
  const folderOf = (one: string) => resolve(cwd, one).replace(/([/\\]\*\*)?([/\\]\*(\.[^/\\]*)?)?$/, '');
  return claims.some(
    ({ team, problems }) => problems.length > 0 && team.policies.some((one) => isWithin(folderOf(one), folderOf(path))),
  );
}

const MISSING =
  'a file meant for this team would belong to none, and could select anything: correct its policies in ebb.yaml, or put a file there';

/** Problems of a team's paths: a path that matches nothing, or no file of the team among the policies. */
function missingFiles(
  { team, names, problems }: TeamClaims,
  files: readonly OwnedFile[],
  { cwd, isComplete }: Pick<OwnerOptions, 'cwd' | 'isComplete'>,
): PolicyProblem[] {
  const { name } = team;
  const missing = problems.map((problem) => ({ ...problem, team: name }));
  if (names.size === 0) {
    return missing.map((problem) => ({ ...problem, code: 'no-files', message: `${problem.message}; ${MISSING}` }));
  }
  if (!isComplete || files.some((file) => file.team === team)) return missing;
  const file = shownPath(team.policies[0] ?? '', cwd);
  const message = `no policy file is of team ${name}: add this path to policies in ebb.yaml, or put a file there that is not a link to another team's file`;
  return [...missing, { code: 'no-files', file, message, team: name }];
}

/** The roots of the policy paths, as real folders. */
async function realRoots(paths: readonly string[], cwd: string, resolveReal: ResolveRealPath): Promise<string[]> {
  const roots: string[] = [];
  for (const path of paths) {
    const { base, isFolder } = await splitPath(path, cwd);
    const { real } = await resolveReal(base);
    if (real !== undefined) roots.push(isFolder ? real : dirname(real));
  }
  return roots;
}

/** The files and folders that a team's paths give it. Only the last part of a path may be a link. */
interface TeamClaims {
  team: Team;
  /** Folders with all that is below them. */
  folders: Set<string>;
  /** Single files, and links to files. */
  files: Set<string>;
  /** The matches of its paths, as found. */
  names: Set<string>;
  /** Targets of the team's links. */
  linked: Set<string>;
  /** Folders and files whose owner is uncertain unless another team has claimed them. */
  doubtful: Set<string>;
  problems: PolicyProblem[];
}

interface ClaimOptions {
  cwd: string;
  resolveReal: ResolveRealPath;
  /** The real folders in which the policy paths start. */
  roots: readonly string[];
}

/** File patterns that match every policy file of a folder: they mean the folder. */
const ANY_FILE = /^\*+(\.(ya?ml|y\*ml|\{ya?ml,ya?ml\}|\*))?$/;

/** Resolves the paths of a team. */
async function claimsOf(team: Team, options: ClaimOptions): Promise<TeamClaims> {
  const claims: TeamClaims = {
    team,
    folders: new Set(),
    files: new Set(),
    names: new Set(),
    linked: new Set(),
    doubtful: new Set(),
    problems: [],
  };
  for (const path of team.policies) {
    const split = await splitPath(path, options.cwd);
    const found = await filesOf(split);
    const files = typeof found === 'string' ? [] : found;
    if (typeof found === 'string') {
      const message = `policies of team ${team.name}: ${found}`;
      claims.problems.push({ code: 'files', file: shownPath(resolve(options.cwd, path), options.cwd), message });
    }
    // An empty folder is claimed, too, but not a literal path that doesn't exist.
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
  // The team may be able to create links below the base: they must not claim files elsewhere.
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

/** Claims the folders of a path. True if it claims everything below them. */
async function claimFolders(
  claims: TeamClaims,
  split: SplitPath,
  { resolveReal, roots }: ClaimOptions,
  isLinked: (path: string) => Promise<boolean>,
): Promise<boolean> {
  const { base, isFolder, rest } = split;
  const literal = { folders: isFolder ? [base] : [], isWhole: isFolder, isAnyFile: false };
  const { folders, isWhole, isAnyFile } = rest.length > 0 ? await foldersOf(split) : literal;
  for (const folder of folders) {
    if (folder !== base && (await isLinked(folder))) continue;
    const place = await placeOf(folder, resolveReal);
    if (isWhole) claims.folders.add(place);
    else if (isAnyFile || isStrictlyBelow(roots, place)) claims.doubtful.add(place);
  }
  return isWhole;
}

/** True for a place below a root of the policies: teams may share a root folder, but not a folder below it. */
function isStrictlyBelow(roots: readonly string[], place: string): boolean {
  return roots.some((root) => root !== place && isWithin(root, place));
}

/** The folders of a glob. `isWhole` if it matches every policy file below them, `isAnyFile` if every one directly in them. */
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

/** Splits a glob at slashes outside of braces, brackets and parentheses. */
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
 * A new folder with glob characters in its name turns a glob into a literal path. A team that can create it must not thereby
 * release the files that the glob has matched until then.
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

/** If a path of a team doesn't exist, one with the same letters may be meant: `policies/Web` for `policies/web`. */
async function doubtSimilar(
  { doubtful }: TeamClaims,
  { base, rest: [missing = ''] }: SplitPath,
  options: ClaimOptions,
) {
  const entries = await readdir(base).catch(() => []);
  const similar = entries.filter((entry) => entry !== missing && haveSameLetters(entry, missing));
  for (const entry of similar) doubtful.add(await placeOf(join(base, entry), options.resolveReal));
}

/** The path with the links before its last part resolved. */
async function placeOf(path: string, resolveReal: ResolveRealPath): Promise<string> {
  const { real = dirname(path) } = await resolveReal(dirname(path));
  return join(real, basename(path));
}
