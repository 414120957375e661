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

/** A file that counts, and whose it is. */
export interface OwnedFile {
  /** As it was found, absolute: it may lead through links. */
  name: string;
  /** Its real path, without links. */
  real: string;
  team?: Team;
}

export interface FileOwners {
  files: OwnedFile[];
  problems: PolicyProblem[];
  /** Files of teams that without these teams would be of no team, by the team: the name by which they would. */
  taken: ReadonlyMap<Team, string>;
}

export interface OwnerOptions {
  paths: readonly string[];
  teams: readonly Team[];
  cwd: string;
  /** True if `paths` are all policies that there are: a team then has a file among them. */
  isWhole: boolean;
}

interface Name {
  name: string;
  /** Its real folder, and its own name. */
  place: string;
  links: readonly string[];
}

/**
 * The team of each file, by real paths that are resolved once. A file belongs to the team in whose folder it really is; of several to the
 * first. Otherwise it belongs to the teams whose links lead to it. Only a file that no team can have put there belongs to no team: a file
 * whose owner is uncertain is a problem, and not among the files.
 */
export async function ownersOfFiles(
  found: FoundFiles,
  { paths, teams, cwd, isWhole }: OwnerOptions,
): Promise<FileOwners> {
  const resolveReal = realPathResolver();
  const roots = await realRoots(paths, cwd, resolveReal);
  const claims: TeamClaims[] = [];
  for (const team of teams) claims.push(await claimsOf(team, { cwd, resolveReal, roots }));
  const owners = { files: [] as OwnedFile[], problems: [] as PolicyProblem[], taken: new Map<Team, string>() };
  const byReal = new Map<string, Name[]>();
  for (const name of found.files) {
    const { real, links } = await resolveReal(name);
    const entry = { name, links, place: await placeOf(name, resolveReal) };
    if (real !== undefined) byReal.set(real, [...(byReal.get(real) ?? []), entry]);
    else owners.problems.push(unresolved(entry, claims, cwd));
  }
  const hardLinks = await hardLinksOf(claims, byReal.keys());
  for (const [real, names] of byReal) assign({ real, names, hardLinks, claims, cwd }, owners);
  owners.problems.push(...found.problems.filter(({ file }) => !isMissedByTeam(file, claims, cwd)));
  for (const one of claims) owners.problems.push(...missingFiles(one, owners.files, { cwd, isWhole }));
  return owners;
}

interface Assigning {
  real: string;
  names: readonly Name[];
  hardLinks: ReadonlyMap<string, TeamClaims>;
  claims: readonly TeamClaims[];
  cwd: string;
}

interface Assigned {
  files: OwnedFile[];
  problems: PolicyProblem[];
  taken: Map<Team, string>;
}

/** Adds a file with its owner, or its problem. */
function assign({ real, names, hardLinks, claims, cwd }: Assigning, { files, problems, taken }: Assigned): void {
  const sorted = names.toSorted((a, b) => a.links.length - b.links.length || comparePaths(a.name, b.name));
  const name = sorted[0]?.name ?? real;
  const { leading, free } = byLeader(sorted, claims);
  const problem = (file: string, team: Team, message: string) =>
    problems.push({ code: 'team', file: shownPath(file, cwd), message, team: team.name });
  const owner = claims.find((one) => isOwn(one, real));
  if (owner) {
    files.push({ name, real, team: owner.team });
    const others = [...leading].filter(([claim]) => !isOwn(claim, real));
    const message = `leads to a file of team ${owner.team.name}: remove the link, or copy the file`;
    for (const [{ team }, link] of others) problem(link, team, message);
    return;
  }
  const other = claims.find(({ linked }) => linked.has(real));
  if (leading.size === 0 && other) leading.set(other, name);
  for (const [{ team }, link] of leading) {
    files.push({ name: link, real, team });
    if (free !== undefined) taken.set(team, free);
  }
  if (leading.size > 0) return;
  const sameFile = hardLinks.get(real);
  if (sameFile) {
    taken.set(sameFile.team, name);
    return;
  }
  const doubting = claims.filter(({ doubtful }) => [...doubtful].some((place) => isWithin(place, real)));
  for (const { team } of doubting) {
    const fix = 'write its folder or FOLDER/** there, or move the file';
    problem(name, team, `may be of team ${team.name}, whose policies in ebb.yaml do not match it: ${fix}`);
  }
  if (doubting.length === 0) files.push({ name, real });
}

/** By team, the first name that leads through a place that the team can set; and the first name that leads through none. */
function byLeader(names: readonly Name[], claims: readonly TeamClaims[]) {
  const leading = new Map<TeamClaims, string>();
  let free: string | undefined;
  for (const one of names) {
    const claim = claims.find((claim) => leadsThrough(claim, one));
    if (!claim) free ??= one.name;
    else if (!leading.has(claim)) leading.set(claim, one.name);
  }
  return { leading, free };
}

function isOwn({ folders, files }: TeamClaims, real: string): boolean {
  return files.has(real) || [...folders].some((folder) => folder !== real && isWithin(folder, real));
}

/** True if the way to the file is through something that the team can set. */
function leadsThrough({ folders, files, names }: TeamClaims, { name, place, links }: Name): boolean {
  if (names.has(name) || files.has(place)) return true;
  return links.some((link) => files.has(link) || [...folders].some((folder) => isWithin(folder, link)));
}

/** A link to nowhere, or into a folder that can't be looked into. */
function unresolved(name: Name, claims: readonly TeamClaims[], cwd: string): PolicyProblem {
  const claim = claims.find((one) => leadsThrough(one, name) || isOwn(one, name.place));
  const message = 'cannot be resolved to a file: remove the link, or correct where it leads';
  return { code: 'files', file: shownPath(name.name, cwd), message, ...(claim && { team: claim.team.name }) };
}

/** Files of no team that are hard links to a team's file, with the team: it can change their content. */
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
  const known = [...others].map(([real, inode]) => [real, owners.get(inode)] as const);
  return new Map(known.flatMap(([real, owner]) => (owner ? [[real, owner] as const] : [])));
}

/** True for a path of the policies that means no file, as the folder of a team has none: that is a problem of the team alone. */
function isMissedByTeam(path: string, claims: readonly TeamClaims[], cwd: string): boolean {
  const folderOf = (one: string) => resolve(cwd, one).replace(/([/\\]\*\*)?([/\\]\*(\.[^/\\]*)?)?$/, '');
  return claims.some(
    ({ team, problems }) => problems.length > 0 && team.policies.some((one) => isWithin(folderOf(one), folderOf(path))),
  );
}

const MISSING =
  'a file that is meant for it counts without a team, and may select anything: correct its policies in ebb.yaml, or put a file there';

/** Problems of a team's paths: a path that matches nothing, or no file of the team among the policies. */
function missingFiles(
  { team, names, problems }: TeamClaims,
  files: readonly OwnedFile[],
  { cwd, isWhole }: Pick<OwnerOptions, 'cwd' | 'isWhole'>,
): PolicyProblem[] {
  const { name } = team;
  const missing = problems.map((problem) => ({ ...problem, team: name }));
  if (names.size === 0) {
    return missing.map((problem) => ({ ...problem, code: 'no-files', message: `${problem.message}; ${MISSING}` }));
  }
  if (!isWhole || files.some((file) => file.team === team)) return missing;
  const file = shownPath(team.policies[0] ?? '', cwd);
  const message = `no policy file is of team ${name}: add this path to policies in ebb.yaml, or put a file there that is no link to another's`;
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

/** The files of a team by its paths. All places are real ones: no link leads to them, but each may be a link itself. */
interface TeamClaims {
  team: Team;
  /** Folders of which everything below is the team's. */
  folders: Set<string>;
  /** Single files, and links to files. */
  files: Set<string>;
  /** The matches of its paths. */
  names: Set<string>;
  /** Files to which a link of the team leads. */
  linked: Set<string>;
  /** Unclaimed files in these folders, or among these files, are uncertain. */
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

/** Resolves the paths of a team. */
async function claimsOf(team: Team, options: ClaimOptions): Promise<TeamClaims> {
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
  // A team may be able to set a link below the base: it must not make files elsewhere the team's own.
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

/** File names may share a root folder of the policies; a folder below it has an owner. */
function isStrictlyBelow(roots: readonly string[], place: string): boolean {
  return roots.some((root) => root !== place && isWithin(root, place));
}

function onlyBase(base: string, isFolder: boolean) {
  return { folders: isFolder ? [base] : [], isWhole: isFolder, isAnyFile: false };
}

/** The folders that a glob names, and if it includes everything below them. */
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

/** The parts of a glob between slashes outside of braces, brackets and parentheses. */
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
 * A folder with glob characters in its name turns a former glob into a literal path. A team that can create it must not release the files
 * that the glob has matched until then.
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

/** Where nothing is at a path of a team, a path with the same letters may be meant: `policies/Web` for `policies/web`. */
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
async function placeOf(path: string, resolveReal: ResolveRealPath): Promise<string> {
  const { real = dirname(path) } = await resolveReal(dirname(path));
  return join(real, basename(path));
}
