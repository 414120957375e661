import { didYouMean } from '../common/names.ts';
import type { TrialPolicy } from '../domain/policy/kinds/trial.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { PolicyProblem } from './problem.ts';
import type { WrittenPolicy } from './reader.ts';

/** What is wrong with trials that can only be seen from all policies together, or from what a group selects. */
export function trialProblems(policies: readonly Policy[], written: readonly WrittenPolicy[]): PolicyProblem[] {
  return policies.flatMap((policy) => {
    const place = written.find(({ name }) => name === policy.name);
    if (policy.kind !== 'trial' || !place) return [];
    const { at, problemAt } = place;
    const ofNames = policy.of.flatMap((_, index) => {
      const message = whyNotWithdrawn(policy, index, policies, written);
      return message === undefined ? [] : [problemAt([...at, 'of', index], 'value', message)];
    });
    const selector = badSelector(policy);
    return selector === undefined ? ofNames : [...ofNames, problemAt([...at, 'select'], 'value', selector)];
  });
}

function whyNotWithdrawn(
  { of }: TrialPolicy,
  index: number,
  policies: readonly Policy[],
  written: readonly WrittenPolicy[],
): string | undefined {
  const name = of[index] ?? '';
  if (of.indexOf(name) < index) return `"${name}" is named twice; leave one out`;
  const found = policies.find((policy) => policy.name === name);
  if (!found && written.some((policy) => policy.name === name)) return `"${name}" is not enabled; leave it out`;
  const names = policies.filter(({ kind }) => kind === 'schedule' || kind === 'limits').map((policy) => policy.name);
  if (!found)
    return `no policy is named "${name}"${didYouMean(name, names) || `; there are ${names.slice(0, 20).join(', ')}`}`;
  if (found.kind !== 'schedule' && found.kind !== 'limits') {
    return `"${name}" is of kind ${found.kind}; a trial withdraws schedules and soft limits only`;
  }
  if (found.kind === 'limits' && found.hard) return `"${name}" is a hard limit, which always holds; leave it out`;
  if (found.mode === 'observe')
    return `"${name}" only observes, so it can't be withdrawn; leave it out or let it enforce`;
  return undefined;
}

/** Usage is measured by project or branch: a trial of a part of one could not be told from the rest. */
function badSelector({ unit, select }: TrialPolicy): string | undefined {
  const { computes, types, share, branches, branchRoles } = select;
  const ofBranches = unit === 'project' ? { branches, branch_roles: branchRoles } : {};
  const given = Object.entries({ computes, types, share, ...ofBranches }).filter(([, value]) => value !== undefined);
  if (given.length === 0) return undefined;
  const what = unit === 'project' ? 'whole projects' : 'whole branches';
  return `a trial with unit: ${unit} selects ${what}; leave out ${given.map(([key]) => key).join(', ')}`;
}
