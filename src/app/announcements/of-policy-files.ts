/** Notifications that policy files can't be loaded, and that they can be loaded again: one of each, whichever daemon leads. */

import type { Notification } from '../../domain/notifications/notification.ts';
import { NO_TEAM } from '../../domain/policy/team-parts.ts';
import { HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { ownerOf, partStates, type SetsDeps, staysCurrent } from '../rollout/write-permission.ts';
import { sharedDocuments } from '../shared-documents.ts';

/** Files must be broken, or whole again, for this long, in milliseconds: while an editor saves them they can't be loaded either. */
const SETTLED_MS = MINUTE_MS;

/** What was found longer ago is no news, in milliseconds: the outbox may have forgotten that it was sent. */
const NEWS_MS = HOUR_MS;

/** That the files of a team, or of no team, can't be loaded. Instants are milliseconds since the epoch. */
interface Refusal {
  team: string;
  foundAtMs: number;
  text: string;
  /** When the files could be loaded again. */
  endedAtMs?: number;
}

const REFUSALS = sharedDocuments<readonly Refusal[]>('policies-refused', 1);
const NAME = 'all';

interface PolicyFileDeps extends SetsDeps {
  clock: Pick<Clock, 'now'>;
  store: Pick<DocumentStore, 'document' | 'replaceDocument'>;
}

/** The state of the policy files of a team, and since when. */
interface Seen {
  problems: readonly string[];
  sinceMs: number;
}

export interface PolicyFileNotifications {
  /** Notes which files can't be loaded. Called in each round, also by daemons that don't lead. */
  look(): void;
  /** Stores what is found, so that another leader says the same, and returns what is to be told. */
  read(): Promise<Notification[]>;
}

export function createPolicyFileNotifications(deps: PolicyFileDeps): PolicyFileNotifications {
  const { sets, store, clock } = deps;
  let seen = new Map<string, Seen>();
  return {
    look() {
      seen = new Map(partStates(sets).map(([team, { problems }]) => [team, seenNow(problems, seen.get(team))]));
    },
    async read() {
      const stored = await REFUSALS.open(store, NAME);
      const before = stored.value ?? [];
      const after = refusalsNow(deps, before, seen);
      // A daemon that leads no more has nothing to tell.
      if (JSON.stringify(after) !== JSON.stringify(before) && !(await stored.replace(after))) return [];
      return after.flatMap((refusal) => notificationsOf(refusal, clock.now()));
    },
  };

  function seenNow(problems: readonly string[], before: Seen | undefined): Seen {
    const isSame = before !== undefined && before.problems.length > 0 === problems.length > 0;
    return { problems, sinceMs: isSame ? before.sinceMs : clock.now() };
  }
}

function refusalsNow(
  { rules, clock }: PolicyFileDeps,
  before: readonly Refusal[],
  seen: ReadonlyMap<string, Seen>,
): Refusal[] {
  const nowMs = clock.now();
  return [NO_TEAM, ...rules.current.teams.map(({ name }) => name)].flatMap((team) => {
    const last = before.find((one) => one.team === team);
    const isOpen = last !== undefined && last.endedAtMs === undefined;
    const { problems, sinceMs } = seen.get(team) ?? { problems: [], sinceMs: nowMs };
    const isSettled = nowMs - sinceMs >= SETTLED_MS;
    if (isSettled && !isOpen && problems.length > 0)
      return [{ team, foundAtMs: nowMs, text: refusalText(rules, team, problems) }];
    if (isSettled && isOpen && problems.length === 0) return [{ ...last, endedAtMs: nowMs }];
    return last ?? [];
  });
}

function refusalText(rules: SetsDeps['rules'], team: string, [first = '', ...others]: readonly string[]): string {
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const kept = `${team === NO_TEAM ? 'policy set ' : ''}${staysCurrent(rules, team)}`;
  return `${filesOf(team)} can't be loaded, so ${kept}: ${first}${more}`;
}

function filesOf(team: string): string {
  return team === NO_TEAM ? 'settings or policy files of no team' : `policy files of ${team}`;
}

function notificationsOf({ team, foundAtMs, text, endedAtMs }: Refusal, nowMs: number): Notification[] {
  const about = { id: `policies_refused:${team}:${foundAtMs}`, kind: 'policies_refused', ...ownerOf(team) } as const;
  const all: Notification[] = [{ ...about, atMs: foundAtMs, text, command: 'ebb validate' }];
  if (endedAtMs !== undefined)
    all.push({ ...about, id: `${about.id}:ended`, atMs: endedAtMs, text: `${filesOf(team)} can be loaded again` });
  return all.filter(({ atMs }) => nowMs - atMs < NEWS_MS);
}
