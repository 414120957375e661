import type { PolicySet } from '../domain/policy/policy.ts';
import { type LoadOptions, loadPolicySet } from '../policy/load.ts';
import { formatProblem } from '../policy/problem.ts';
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

/** The policies, or an error that shows every problem with its place. */
export async function loadOrFail(
  paths: readonly string[],
  { knownSources, teams }: Required<Pick<LoadOptions, 'knownSources' | 'teams'>>,
): Promise<PolicySet> {
  const loaded = await loadPolicySet({ paths, knownSources, teams });
  if (loaded.ok) return loaded.set;
  throw new UserError(loaded.problems.map((problem) => formatProblem(problem)).join('\n'));
}
