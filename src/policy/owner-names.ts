import leven from 'leven';
import { didYouMean, haveSameLetters } from '../common/names.ts';
import type { Receiver } from '../domain/notifications/notification.ts';
import { labelRules, type OwnerRule, UNOWNED } from '../domain/policy/owners.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { PolicyProblem } from './problem.ts';
import type { Team } from './teams.ts';

interface OwnerNames {
  /** The name of the settings file. */
  file: string;
  /** `owners` of the settings. */
  owners: readonly OwnerRule[];
  receivers: readonly Pick<Receiver, 'name' | 'owners'>[];
  teams: readonly Pick<Team, 'name'>[];
  policies: readonly Pick<Policy, 'owner'>[];
}

/** Problems of receivers that name an unknown owner: they would never get the notifications of the intended one. */
export function unknownOwners(names: OwnerNames): PolicyProblem[] {
  const existing = [...new Set([...definedOwners(names), ...names.owners.map(([, owner]) => owner), UNOWNED])];
  return names.receivers.flatMap(({ name, owners = [] }) =>
    owners
      .filter((owner) => !existing.includes(owner))
      .map((owner) => {
        const hint = didYouMean(owner, existing) || `; there are ${existing.slice(0, 20).join(', ')}`;
        return problemIn(names, `notify.${name}.owners: no owner is named "${owner}"${hint}`);
      }),
  );
}

/** Labels under `owners` that differ by a letter from a team or from the owner of a policy file: they would split the usage of one team. */
export function misspeltOwners(names: OwnerNames): PolicyProblem[] {
  const defined = definedOwners(names);
  return labelRules(names.owners).flatMap(([glob, owner]) => {
    const near = defined.find((candidate) => leven(candidate, owner) === 1 || haveSameLetters(candidate, owner));
    if (near === undefined || defined.includes(owner)) return [];
    return [
      problemIn(names, `owners."${glob}": no team or policy file has the owner "${owner}"; did you mean "${near}"?`),
    ];
  });
}

/** The owners that teams and policy files define. */
function definedOwners({ teams, policies }: OwnerNames): string[] {
  return [...new Set([...teams.map(({ name }) => name), ...policies.flatMap(({ owner }) => owner ?? [])])];
}

function problemIn({ file }: OwnerNames, message: string): PolicyProblem {
  return { code: 'value', file, message };
}
