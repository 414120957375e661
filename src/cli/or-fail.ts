import type { GuardPolicy } from '../domain/policy/kinds/guard.ts';
import { policiesOfKind } from '../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../domain/policy/policy.ts';
import { unloadedPart, withParts } from '../domain/policy/team-parts.ts';
import { loadPolicySet, type PolicySettings } from '../policy/load.ts';
import type { PolicySetResult } from '../policy/parse.ts';
import { formatProblem } from '../policy/problem.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import { UserError } from './fail.ts';
import type { CommonFlags } from './flags.ts';
import { writeErr, writeErrLine } from './output.ts';

type SettingsFlags = Pick<CommonFlags, 'config' | 'apiUrl' | 'queueUrl' | 'policies'>;

/** Reads the settings. Throws a UserError that shows every problem with its place. Prints a warning for each former name that is still accepted. */
export function settingsOrFail({ config: configFile, apiUrl, queueUrl, policies }: SettingsFlags): Settings {
  const read = readSettings({ configFile, flags: { apiUrl, queueUrl, policies } });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  for (const warning of read.warnings) writeErrLine(`warning: ${warning}`);
  return read.settings;
}

/** The policies that could be read, and the teams whose files could not. */
export interface ReadPolicies {
  policies: PolicySet;
  /** The first problem of each team whose files can't be read, `FILE:LINE:COLUMN: MESSAGE`. */
  broken: ReadonlyMap<string, string>;
}

export async function settingsAndPolicies(flags: SettingsFlags): Promise<ReadPolicies & { settings: Settings }> {
  const settings = settingsOrFail(flags);
  return { settings, ...(await loadPoliciesOrFail(settings.policies, settings)) };
}

/**
 * Throws a UserError that shows every problem with its place. Problems of a team don't affect others: they are printed, the
 * exit code is 1, and the computes of that team stay as they are. `isComplete` is false if teams may have no file among the paths.
 */
export async function loadPoliciesOrFail(
  paths: readonly string[],
  settings: PolicySettings,
  { isComplete = true } = {},
): Promise<ReadPolicies> {
  const loaded = await loadPolicySet({ paths, settings, isComplete });
  const read = validPoliciesOf(loaded, settings);
  if (loaded.ok) return read;
  for (const problem of loaded.problems) writeErr(`error: ${formatProblem(problem)}\n`);
  process.exitCode = 1;
  return read;
}

/** The guard with this name. Throws a UserError that lists the guards if there is none. */
export function guardNamed({ policies }: PolicySet, name: string): GuardPolicy {
  const guards = policiesOfKind(policies, 'guard');
  const guard = guards.find((one) => one.name === name);
  const names = guards.map((one) => one.name).join(', ');
  if (!guard) throw new UserError(`no guard is called ${name}; ${names ? `there are ${names}` : 'there is none'}`);
  return guard;
}

/**
 * The policies to start a daemon with. A team whose files have problems does not affect others: nothing is written to its computes
 * until the files can be read. The daemon reports the problems when it first reads them.
 */
export async function loadToRun(paths: readonly string[], settings: PolicySettings): Promise<PolicySet> {
  return validPoliciesOf(await loadPolicySet({ paths, settings, isComplete: true }), settings).policies;
}

/**
 * The valid policies, with a freeze for each team that has a problem. Throws a UserError with every problem if files that belong to no
 * team have one.
 */
export function validPoliciesOf(loaded: PolicySetResult, { teams }: Pick<PolicySettings, 'teams'>): ReadPolicies {
  if (loaded.ok) return { policies: loaded.set, broken: new Map() };
  const { others, problems } = loaded;
  if (!others) throw new UserError(problems.map((problem) => formatProblem(problem)).join('\n'));
  const broken = new Map<string, string>();
  for (const { team, excerpt: _line, ...oneLine } of problems)
    if (team !== undefined && !broken.has(team)) broken.set(team, formatProblem(oneLine));
  const parts = teams.flatMap((team) => (broken.has(team.name) ? [[team.name, unloadedPart(team)] as const] : []));
  return { policies: withParts(others.set, new Map(parts)), broken };
}
