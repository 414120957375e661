import type { PolicyKind } from '../domain/policy/kinds/kinds.ts';
import { splitGlobs } from '../domain/policy/select.ts';
import type { SelectorKeys } from '../domain/policy/selector.ts';
import { globCovers, globsMeet } from './lint/glob-overlap.ts';
import type { Path } from './read-yaml.ts';

export interface Team {
  name: string;
  /** Files, folders and globs. */
  policies: readonly string[];
  /** Globs on ids and names of the projects that its policies may select; a `!` before a glob excludes. */
  projects: readonly string[];
  /** The allowed kinds; all if absent. */
  kinds?: readonly PolicyKind[];
  maxPriority?: number;
}

/** The unique name of a policy or source, so that no team can take a name from another. */
export function qualifiedName(team: Team | undefined, name: string): string {
  return team ? `${team.name}/${name}` : name;
}

/**
 * The places where a policy exceeds the permissions of its team, as far as its keys are known. The globs of the policy must prove that it selects
 * only the team's projects, although its selector is also restricted to them.
 */
export function beyondTeam(
  { kind, priority, select }: { kind: PolicyKind; priority: number | undefined; select: SelectorKeys | undefined },
  team: Team,
): { at: Path; message: string }[] {
  const beyond: { at: Path; message: string }[] = [];
  const report = (at: Path, message: string) =>
    beyond.push({ at, message: `${message} (team ${team.name} of ebb.yaml)` });
  if (team.kinds && !team.kinds.includes(kind)) {
    report(['kind'], `${kind} is not allowed here; use ${team.kinds.join(', ')}`);
  }
  if (team.maxPriority !== undefined && priority !== undefined && priority > team.maxPriority) {
    report(['priority'], `is above ${team.maxPriority}, the highest allowed here`);
  }
  if (!select) return beyond;
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
  const { includes, excludes } = splitGlobs(scope);
  if (!includes.some((include) => globCovers(include, glob))) return 'select only projects within these';
  const isExcluded = (exclude: string) =>
    !globsMeet(exclude, glob) || splitGlobs(selected).excludes.some((other) => globCovers(other, exclude));
  const missing = excludes.filter((exclude) => !isExcluded(exclude));
  return missing.length === 0
    ? undefined
    : `add ${missing.map((exclude) => `"!${exclude}"`).join(', ')} to select.projects`;
}
