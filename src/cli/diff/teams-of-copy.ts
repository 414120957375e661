/** Which team the files of a copy of the policies belong to: settings only know the folder that was copied. */
import { join, relative, resolve, sep } from 'node:path';
import { findPolicyFiles } from '../../policy/find-files.ts';
import type { Team } from '../../policy/teams.ts';

/** What the settings say of files. */
interface Places {
  policies: readonly string[];
  teams: readonly Team[];
}

/**
 * The teams, with the files that each has in `path` and near it. A file of a copy has the team that a file at the same place has in the
 * folder that it is compared with, or else in the policies of the settings. Teams without files are left out: a part may be compared.
 */
export async function teamsIn(path: string, comparedWith: string, { policies, teams }: Places): Promise<Team[]> {
  const [here, there, folder] = [path, comparedWith, policies[0] ?? '.'].map((one) => resolve(one)) as Three;
  const rebased = isWithin(folder, here)
    ? teams
    : movedTo(teams, placesOf(here, isWithin(folder, there) ? there : folder, folder));
  const found = rebased.map(async (team) => ({ ...team, policies: (await findPolicyFiles(team.policies, '.')).files }));
  return (await Promise.all(found)).filter((team) => team.policies.length > 0);
}

type Three = [string, string, string];

/** What was copied, and where to: `policies` to `next` where `policies/web` is compared with `next/web`. */
function placesOf(here: string, there: string, folder: string): { from: string; to: string } {
  const part = sep + relative(folder, there);
  const isSamePart = part !== sep && here.endsWith(part);
  return isSamePart ? { from: folder, to: here.slice(0, -part.length) } : { from: there, to: here };
}

function movedTo(teams: readonly Team[], { from, to }: { from: string; to: string }): Team[] {
  const moved = (paths: readonly string[]) =>
    paths
      .map((path) => resolve(path))
      .filter((path) => isWithin(from, path))
      .map((path) => join(to, relative(from, path)));
  return teams.map((team) => ({ ...team, policies: moved(team.policies) }));
}

function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
