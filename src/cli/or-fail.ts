import type { PolicySet } from '../domain/policy/policy.ts';
import { unloadedPart, withParts } from '../domain/policy/team-parts.ts';
import { loadPolicySet } from '../policy/load.ts';
import type { PolicySetResult } from '../policy/parse.ts';
import { formatProblem } from '../policy/problem.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import { UserError } from './fail.ts';
import type { CommonFlags } from './flags.ts';
import { writeErr, writeErrLine } from './output.ts';

type SettingsFlags = Pick<CommonFlags, 'config' | 'apiUrl' | 'queueUrl' | 'policies'>;

/** Throws a UserError that shows every problem with its place. Prints a warning for each old name that is still accepted. */
export function settingsOrFail({ config: configFile, apiUrl, queueUrl, policies }: SettingsFlags): Settings {
  const read = readSettings({ configFile, flags: { apiUrl, queueUrl, policies } });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  for (const warning of read.warnings) writeErrLine(`warning: ${warning}`);
  return read.settings;
}

/** The settings that decide how policy files are read. */
type PolicySettings = Pick<Settings, 'knownSources' | 'teams' | 'notify'>;

export async function settingsAndPolicies(flags: SettingsFlags): Promise<{ settings: Settings; policies: PolicySet }> {
  const settings = settingsOrFail(flags);
  return { settings, policies: await loadOrFail(settings.policies, settings) };
}

function loadWith(paths: readonly string[], { knownSources, teams, notify }: PolicySettings, isComplete = true) {
  return loadPolicySet({ paths, knownSources, teams, receivers: notify.receivers, isComplete });
}

/**
 * Throws a UserError that shows every problem with its place. Problems of a team don't affect others: they are printed, the
 * exit code is 1, and the computes of that team stay as they are. `isComplete` is false if teams may have no file among the paths.
 */
export async function loadOrFail(
  paths: readonly string[],
  settings: PolicySettings,
  { isComplete = true } = {},
): Promise<PolicySet> {
  const loaded = await loadWith(paths, settings, isComplete);
  if (loaded.ok) return loaded.set;
  const set = withoutBroken(loaded, settings);
  for (const problem of loaded.problems) writeErr(`error: ${formatProblem(problem)}\n`);
  process.exitCode = 1;
  return set;
}

/**
 * The policies to start a daemon with. A team whose files have problems does not affect others: nothing is written to its computes
 * until the files can be read. The daemon reports the problems when it first reads them.
 */
export async function loadToRun(paths: readonly string[], settings: PolicySettings): Promise<PolicySet> {
  const loaded = await loadWith(paths, settings);
  return loaded.ok ? loaded.set : withoutBroken(loaded, settings);
}

/** The valid policies, with a freeze for each team that has a problem. */
function withoutBroken({ others, problems }: PolicySetResult & { ok: false }, { teams }: PolicySettings): PolicySet {
  if (!others) throw new UserError(problems.map((problem) => formatProblem(problem)).join('\n'));
  const broken = teams.filter(({ name }) => problems.some(({ team }) => team === name));
  return withParts(others.set, new Map(broken.map((team) => [team.name, unloadedPart(team)])));
}
