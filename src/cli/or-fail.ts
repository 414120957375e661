import type { PolicySet } from '../domain/policy/policy.ts';
import { unloadedPart, withParts } from '../domain/policy/team-parts.ts';
import { loadPolicySet } from '../policy/load.ts';
import type { PolicySetResult } from '../policy/parse.ts';
import { formatProblem, type PolicyProblem } from '../policy/problem.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import { UserError } from './fail.ts';
import { writeErr, writeErrLine } from './output.ts';

/** The settings. Throws a UserError that shows every problem with its place. Prints a warning for each old name that is still accepted. */
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
 * The policies. Throws a UserError that shows every problem with its place. Problems of a team don't affect others: they are printed, the
 * exit code is 1, and the computes of that team stay as they are. `isWhole` is false if teams may have no file among the paths.
 */
export async function loadOrFail(paths: readonly string[], known: Known, { isWhole = true } = {}): Promise<PolicySet> {
  const loaded = await loadWith(paths, known, isWhole);
  if (loaded.ok) return loaded.set;
  const set = withoutBroken(loaded, known);
  for (const problem of loaded.problems) writeErr(`error: ${formatProblem(problem)}\n`);
  process.exitCode = 1;
  return set;
}

/**
 * The policies to start a daemon with. A team whose files have problems does not affect others: nothing is written to its computes
 * until the files can be read. The daemon reports the problems when it first reads them.
 */
export async function loadToRun(paths: readonly string[], known: Known): Promise<PolicySet> {
  const loaded = await loadWith(paths, known);
  return loaded.ok ? loaded.set : withoutBroken(loaded, known);
}

/** The valid policies, with a freeze for each team that has a problem. */
function withoutBroken({ others, problems }: PolicySetResult & { ok: false }, { teams }: Known): PolicySet {
  if (!others) throw refused(problems);
  const broken = teams.filter(({ name }) => problems.some(({ team }) => team === name));
  return withParts(others.set, new Map(broken.map((team) => [team.name, unloadedPart(team)])));
}

function refused(problems: readonly PolicyProblem[]): UserError {
  return new UserError(problems.map((problem) => formatProblem(problem)).join('\n'));
}
