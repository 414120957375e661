import type { PolicySet } from '../domain/policy/policy.ts';
import { type LoadOptions, loadPolicySet } from '../policy/load.ts';
import { formatProblem } from '../policy/problem.ts';
import { UserError } from './fail.ts';

/** The policies, or an error that shows every problem with its place. */
export async function loadOrFail(
  paths: readonly string[],
  { knownSources, teams }: Required<Pick<LoadOptions, 'knownSources' | 'teams'>>,
): Promise<PolicySet> {
  const loaded = await loadPolicySet({ paths, knownSources, teams });
  if (loaded.ok) return loaded.set;
  throw new UserError(loaded.problems.map((problem) => formatProblem(problem)).join('\n'));
}
