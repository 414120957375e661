import type { PolicySet } from '../domain/policy/policy.ts';
import { frozenPart, withParts } from '../domain/policy/team-parts.ts';
import { loadPolicySet } from '../policy/load.ts';
import { formatProblem, type PolicyProblem } from '../policy/problem.ts';
import { readSettings, type Settings } from '../settings.ts';
import { UserError } from './fail.ts';
import { writeErrLine } from './output.ts';

/** The settings, or an error that shows every problem with its place. Old names that are still accepted are a warning each. */
export function settingsOrFail(options: Parameters<typeof readSettings>[0]): Settings {
  const read = readSettings(options);
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  for (const warning of read.warnings) writeErrLine(`warning: ${warning}`);
  return read.settings;
}

type Known = Pick<Settings, 'knownSources' | 'teams' | 'notify'>;

function loadWith(paths: readonly string[], { knownSources, teams, notify }: Known) {
  return loadPolicySet({ paths, knownSources, teams, receivers: notify.receivers });
}

/** The policies, or an error that shows every problem with its place. */
export async function loadOrFail(paths: readonly string[], known: Known): Promise<PolicySet> {
  const loaded = await loadWith(paths, known);
  if (loaded.ok) return loaded.set;
  throw refused(loaded.problems);
}

/**
 * The policies to start a daemon with: teams whose files have problems hinder nobody else. Nothing is written to the computes of those
 * until their files can be read; the daemon says what is wrong when it first reads them.
 */
export async function loadToRun(paths: readonly string[], known: Known): Promise<PolicySet> {
  const loaded = await loadWith(paths, known);
  if (loaded.ok) return loaded.set;
  if (!loaded.others) throw refused(loaded.problems);
  const broken = known.teams.filter(({ name }) => loaded.problems.some(({ team }) => team === name));
  return withParts(loaded.others.set, new Map(broken.map((team) => [team.name, frozenPart(team)])));
}

function refused(problems: readonly PolicyProblem[]): UserError {
  return new UserError(problems.map((problem) => formatProblem(problem)).join('\n'));
}
