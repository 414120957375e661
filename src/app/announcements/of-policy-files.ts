/** Notifications that policy files can't be loaded, and that they can be loaded again: one of each, whichever daemon leads. */

import { NO_TEAM } from '../../domain/policy/team-parts.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { LEFT_ALONE, ownerField, partStates, type SetsDeps, staysCurrent } from '../rollout/write-permission.ts';
import { createLastingStates, type StateNotifications } from './lasting-states.ts';

interface PolicyFileDeps extends SetsDeps {
  clock: Pick<Clock, 'now'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
}

export function createPolicyFileNotifications(deps: PolicyFileDeps): StateNotifications {
  const { sets, rules } = deps;
  return createLastingStates(deps, {
    collection: 'policies-refused',
    version: 2,
    // Files that an editor is just saving can't be loaded either.
    settledMs: MINUTE_MS,
    present: () =>
      new Map(
        partStates(sets).flatMap(([team, { problems }]) =>
          problems.length > 0 ? [[team, refusalText(rules, team, problems)]] : [],
        ),
      ),
    // Told again once a restart has lost the policies that had stayed in effect: from then on the team's computes are left alone.
    isToldAgain: (before, text) => sets.newer === undefined && isLeftAlone(text) && !isLeftAlone(before.text),
    isGone: (team) => team !== NO_TEAM && rules.current.teams.every(({ name }) => name !== team),
    notificationOf({ name: team, foundAtMs, text }, endedAtMs) {
      const about = { kind: 'policies_refused', ...ownerField(team) } as const;
      const id = `policies_refused:${team}:${foundAtMs}`;
      if (endedAtMs === undefined) return { ...about, id, atMs: foundAtMs, text, command: 'ebb validate' };
      return { ...about, id: `${id}:ended`, atMs: endedAtMs, text: `${filesOf(team)} can be loaded again` };
    },
  });
}

function refusalText(rules: SetsDeps['rules'], team: string, [first = '', ...others]: readonly string[]): string {
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const kept = `${team === NO_TEAM ? 'policy set ' : ''}${staysCurrent(rules, team)}`;
  return `${filesOf(team)} can't be loaded, so ${kept}: ${first}${more}`;
}

function isLeftAlone(text: string): boolean {
  return text.includes(`, so ${LEFT_ALONE} `);
}

function filesOf(team: string): string {
  return team === NO_TEAM ? 'settings or policy files of no team' : `policy files of ${team}`;
}
