import type { PolicyKind } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import { globCovers, globsMeet } from './lint/glob-overlap.ts';
import type { Path } from './read-yaml.ts';

/** The permissions of a team's policy files. */
export interface Team {
  name: string;
  /** Files, folders and globs: their matches belong to the team. */
  policies: readonly string[];
  /** Globs on ids and names of the projects that it may select; a `!` before a glob excludes. */
  projects: readonly string[];
  /** The kinds that it may use; all if absent. */
  kinds?: readonly PolicyKind[];
  maxPriority?: number;
}

/** A name of a team's file as others see it, so that no team can take a name from another. */
export function qualifiedName(team: Team | undefined, name: string): string {
  return team ? `${team.name}/${name}` : name;
}

/**
 * Says where a policy exceeds its team's permissions. Its selection must be within the team's projects by the globs alone; its selector
 * carries them as well, so that nothing else is ever selected.
 */
export function beyondTeam({ kind, priority, select }: Policy, team: Team): { at: Path; message: string }[] {
  const beyond: { at: Path; message: string }[] = [];
  const report = (at: Path, message: string) =>
    beyond.push({ at, message: `${message} (team ${team.name} of ebb.yaml)` });
  if (team.kinds && !team.kinds.includes(kind)) {
    report(['kind'], `${kind} is not allowed here; use ${team.kinds.join(', ')}`);
  }
  if (team.maxPriority !== undefined && priority > team.maxPriority) {
    report(['priority'], `is above ${team.maxPriority}, the highest allowed here`);
  }
  const scope = team.projects.join(', ');
  if (!select.projects) report(['select'], `names no projects; add projects within ${scope}`);
  for (const [index, glob] of (select.projects ?? []).entries()) {
    const fix = fixFor(glob, select.projects ?? [], team.projects);
    if (fix) report(['select', 'projects', index], `"${glob}" reaches beyond the projects ${scope}; ${fix}`);
  }
  return beyond;
}

/** The fix for a glob that is not within the scope; undefined if it is. */
function fixFor(glob: string, selected: readonly string[], scope: readonly string[]): string | undefined {
  if (glob.startsWith('!')) return undefined;
  const included = scope.filter((one) => !one.startsWith('!'));
  if (!included.some((one) => globCovers(one, glob))) return 'select only projects within these';
  const isExcluded = (out: string) => !globsMeet(out, glob) || excludesOf(selected).some((own) => globCovers(own, out));
  const missing = excludesOf(scope).filter((out) => !isExcluded(out));
  return missing.length === 0 ? undefined : `add ${missing.map((out) => `"!${out}"`).join(', ')} to select.projects`;
}

function excludesOf(globs: readonly string[]): string[] {
  return globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1));
}
