import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { comparePaths } from '../domain/policy/policy-set.ts';
import { type FoundFiles, shownPath, splitPath } from './find-files.ts';
import type { PolicyProblem } from './problem.ts';
import { isWithin, type ResolveRealPath, realPathResolver } from './real-path.ts';
import { claimsOf, placeOf, type TeamClaims } from './team-claims.ts';
import type { Team } from './teams.ts';

/** A file that counts, and whose it is. */
export interface OwnedFile {
  /** As it was found, absolute: it may lead through links. */
  name: string;
  /** Where it is, without links. */
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

/** Adds a file with its owner, or what is wrong with it. */
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

/** The first name that leads through what a team can set, by team; and the first that leads through nothing of the kind. */
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

/** The files of no team that are another name of a team's file, with the team: it can change what is in them. */
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

/** What is wrong with the paths of a team: a path that matches nothing, or no file of the team among the policies. */
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

/** Where the paths of the policies start, as real folders. */
async function realRoots(paths: readonly string[], cwd: string, resolveReal: ResolveRealPath): Promise<string[]> {
  const roots: string[] = [];
  for (const path of paths) {
    const { base, isFolder } = await splitPath(path, cwd);
    const { real } = await resolveReal(base);
    if (real !== undefined) roots.push(isFolder ? real : dirname(real));
  }
  return roots;
}
