import type { PolicySet } from '../domain/policy/policy.ts';
import { frozenPart, withParts } from '../domain/policy/team-parts.ts';
import { loadPolicySet } from '../policy/load.ts';
import type { PolicySetResult } from '../policy/parse.ts';
import { formatProblem, type PolicyProblem } from '../policy/problem.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
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

function loadWith(paths: readonly string[], { knownSources, teams, notify }: Known, isWhole = true) {
  return loadPolicySet({ paths, knownSources, teams, receivers: notify.receivers, isWhole });
}

/**
 * The policies, or an error that shows every problem with its place. Problems of teams hinder nobody else: they are said, the exit code is 1,
 * and the computes of such a team are left as they are. `isWhole` is false where teams may have no file among the paths.
 */
export async function loadOrFail(paths: readonly string[], known: Known, { isWhole = true } = {}): Promise<PolicySet> {
  const loaded = await loadWith(paths, known, isWhole);
  if (loaded.ok) return loaded.set;
  const set = withoutBroken(loaded, known);
  for (const problem of loaded.problems) writeErrLine(`error: ${formatProblem(problem)}`);
  process.exitCode = 1;
  return set;
}

/**
 * The policies to start a daemon with: teams whose files have problems hinder nobody else. Nothing is written to the computes of those
 * until their files can be read; the daemon says what is wrong when it first reads them.
 */
export async function loadToRun(paths: readonly string[], known: Known): Promise<PolicySet> {
  const loaded = await loadWith(paths, known);
  return loaded.ok ? loaded.set : withoutBroken(loaded, known);
}

/** What is right, with a freeze for each team of which something is not. */
function withoutBroken({ others, problems }: PolicySetResult & { ok: false }, { teams }: Known): PolicySet {
  if (!others) throw refused(problems);
  const broken = teams.filter(({ name }) => problems.some(({ team }) => team === name));
  return withParts(others.set, new Map(broken.map((team) => [team.name, frozenPart(team)])));
}

function refused(problems: readonly PolicyProblem[]): UserError {
  return new UserError(problems.map((problem) => formatProblem(problem)).join('\n'));
}
