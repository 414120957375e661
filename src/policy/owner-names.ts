import leven from 'leven';
import { didYouMean, haveSameLetters } from '../common/names.ts';
import type { Receiver } from '../domain/notifications/notification.ts';
import { type OwnerRule, UNOWNED } from '../domain/policy/owners.ts';
import type { Policy } from '../domain/policy/policy.ts';
import type { PolicyProblem } from './problem.ts';
import type { Team } from './teams.ts';

interface OwnerNames {
  /** The settings file, as messages name it. */
  file: string;
  /** `owners` of the settings. */
  owners: readonly OwnerRule[];
  receivers: readonly Pick<Receiver, 'name' | 'owners'>[];
  teams: readonly Pick<Team, 'name'>[];
  policies: readonly Pick<Policy, 'owner'>[];
}

/** Owners of receivers that nothing has: what concerns the owner that is meant would never reach them. */
export function unknownOwners(names: OwnerNames): PolicyProblem[] {
  const known = [...new Set([...certainOwners(names), ...names.owners.map(([, owner]) => owner), UNOWNED])];
  return names.receivers.flatMap(({ name, owners = [] }) =>
    owners
      .filter((owner) => !known.includes(owner))
      .map((owner) => {
        const hint = didYouMean(owner, known) || `; there are ${known.slice(0, 20).join(', ')}`;
        return problemIn(names, `notify.${name}.owners: no owner is named "${owner}"${hint}`);
      }),
  );
}

/** Labels under `owners` that are one letter from a team or from the owner of a policy file: one team's usage would have two owners. */
export function misspeltOwners(names: OwnerNames): PolicyProblem[] {
  const known = certainOwners(names);
  return names.owners.flatMap(([glob, owner]) => {
    const near = known.find((one) => leven(one, owner) === 1 || haveSameLetters(one, owner));
    if (near === undefined || known.includes(owner)) return [];
    return [
      problemIn(names, `owners."${glob}": no team or policy file has the owner "${owner}"; did you mean "${near}"?`),
    ];
  });
}

function certainOwners({ teams, policies }: OwnerNames): string[] {
  return [...new Set([...teams.map(({ name }) => name), ...policies.flatMap(({ owner }) => owner ?? [])])];
}

function problemIn({ file }: OwnerNames, message: string): PolicyProblem {
  return { code: 'value', file, message };
}
