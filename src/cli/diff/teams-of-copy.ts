/** Assigns the files of a copied policy folder to teams: settings only name the original folder. */
import { realpath } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { findPolicyFiles, isWithin, splitPath } from '../../policy/find-files.ts';
import type { Team } from '../../policy/teams.ts';
import type { Settings } from '../../settings/settings.ts';

/**
 * Returns the teams, with the paths of their files in `path`. In a copy, a file belongs to the team of the original file at the same place. The
 * original is `comparedWith` if that is within the policy folder of the settings, otherwise this folder. Teams without files in `path` are left
 * out, since only a part of the policies may be compared.
 */
export async function teamsIn(
  path: string,
  comparedWith: string,
  { policies, teams }: Pick<Settings, 'policies' | 'teams'>,
): Promise<Team[]> {
  const copy = await realBase(path);
  const other = await realBase(comparedWith);
  const folder = await realBase(policies[0] ?? '.');
  const move = moveOf(copy, isWithin(folder, other) ? other : folder, folder);
  const rebased = isWithin(folder, copy) ? teams : await Promise.all(teams.map((team) => moved(team, move)));
  const found = rebased.map(async (team) =>
    (await findPolicyFiles(team.policies, '.')).files.length > 0 ? [team] : [],
  );
  return (await Promise.all(found)).flat();
}

/** The real path of the existing part of a path, without globs and links. */
async function realBase(path: string): Promise<string> {
  return realpath((await splitPath(path, '.')).base);
}

interface Move {
  from: string;
  to: string;
}

/** Finds the folder that was copied, and its copy. For `policies/web` compared with `next/web` these are `policies` and `next`. */
function moveOf(copy: string, original: string, folder: string): Move {
  const part = sep + relative(folder, original);
  const isSamePart = part !== sep && copy.endsWith(part);
  return isSamePart ? { from: folder, to: copy.slice(0, -part.length) } : { from: original, to: copy };
}

async function moved(team: Team, { from, to }: Move): Promise<Team> {
  const inside = await Promise.all(team.policies.map((path) => relativeTo(from, path)));
  return { ...team, policies: inside.flatMap((path) => (path === undefined ? [] : [join(to, path)])) };
}

/** The path relative to a real folder; undefined if the path is not below the folder. The part below the folder stays as written. */
async function relativeTo(folder: string, path: string): Promise<string | undefined> {
  const absolute = resolve(path);
  for (let above = absolute; ; above = dirname(above)) {
    if ((await realpath(above).catch(() => undefined)) === folder) return relative(above, absolute);
    if (above === dirname(above)) return undefined;
  }
}
