import { Command } from 'commander';
import { budgetLines } from './cost/budget-lines.ts';
import { costLines } from './cost/month-lines.ts';
import { type FilterFlags, withFilterFlags } from './filter.ts';
import { type AccessFlags, type Answer, answered, withAccessFlags, withOperator } from './operator/access.ts';
import { selectorOf } from './operator/parse-flags.ts';
import { describeFreeze, describeHold, printLines } from './operator/show.ts';
import { writeJson } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb status
  $ ebb status --url http://127.0.0.1:9464      ask that daemon
  $ ebb status --json | jq .waiting

With an embedded store it asks the daemon that has it open. On Redis and Postgres it reads the store: the daemons, and
what the leader last told of what waits. The current state of computes is not there: --url shows more.`;

export function statusCommand(): Command {
  return withFilterFlags(withAccessFlags(new Command('status')))
    .addHelpText('after', EXAMPLES)
    .action(showStatus);
}

async function showStatus({ owner, select, ...flags }: AccessFlags & FilterFlags): Promise<void> {
  const status = await withOperator(flags, ({ operator }) =>
    answered(operator.status({ owner, ...(select && { select: selectorOf(select) }) })),
  );
  if (flags.json) writeJson(status);
  else printLines(describeStatus(status));
}

type DaemonDocument = NonNullable<Status['daemons']>[number];
type Status = Answer<'status'>;

/** A status as lines: missing connections, current policies, then other problems. */
export function describeStatus(status: Status): string[] {
  const { holds, freezes, degraded, stopped_fights, staged } = status;
  return [
    // A daemon of an older version does not tell.
    ...(status.unmet_headroom ?? []).map(
      ({ compute_id, message }) => `not enough connections: ${compute_id}: ${message}`,
    ),
    ...daemonLines(status),
    ...costLines(status.costs ?? null),
    ...budgetLines(status.budgets ?? [], status.at),
    ...[staged ?? [], status.staged_teams ?? []].flat().map(({ message }) => `staged: ${message}`),
    ...deadLines(status.dead_notifications ?? []),
    ...(status.policy_problems ?? []).map((problem) => `policies: ${problem}`),
    ...status.waiting.map(({ reason, computes }) => `waiting (${reason}): ${computes}`),
    ...freezes.map((one) => `frozen until ${one.expires_at}: ${describeFreeze(one)}; ${one.owner}: ${one.reason}`),
    ...holds.map(
      (one) => `held until ${one.expires_at}: ${one.compute_id}, ${describeHold(one)}; ${one.owner}: ${one.reason}`,
    ),
    ...(status.manual_changes ?? []).map(({ compute_id, message }) => `by hand: ${compute_id}: ${message}`),
    ...(status.guard_floors ?? []).map(
      ({ compute_id, message }) => `taken back: ${compute_id}: ${message}; ebb release ${compute_id} --guard`,
    ),
    ...stopped_fights.map(
      ({ compute_id, fields }) =>
        `left alone: ${compute_id}, ${fields.join(' and ')}: changed back too often; ebb release ${compute_id}`,
    ),
    ...degraded.map(({ compute_id, message }) => `degraded: ${compute_id}: ${message}`),
    ...factLines(status.facts ?? []),
  ];
}

function daemonLines(status: Status): string[] {
  const { source, mode, set_hash, revision, policies, computes, unread_projects, readiness, daemons } = status;
  const counts = Object.entries(computes).map(([name, count]) => `${count} ${name}`);
  const set =
    set_hash === null ? [] : [`policy set: ${set_hash.slice(0, 12)}${revision === null ? '' : `, ${revision}`}`];
  const bad = readiness?.checks.filter(({ ok }) => !ok) ?? [];
  return [
    ...(source === 'store' ? ['from the store, without a daemon'] : []),
    ...(mode === null ? [] : [`mode: ${mode}`]),
    ...(daemons ?? []).map(daemonLine),
    ...[...new Set((daemons ?? []).flatMap((one) => one.staged))].map((message) => `staged: ${message}`),
    ...set,
    ...(policies === null ? [] : [`policies: ${policies.map(({ name }) => name).join(', ') || 'none'}`]),
    `computes: ${counts.join(', ') || 'none'}${unreadText(unread_projects)}`,
    ...(readiness?.ready ? ['ready'] : []),
    ...bad.map(({ name, message }) => `not ready: ${name}: ${message}`),
  ];
}

/** What is verified and what is assumed of the control API; accounts of which the same is known share a line. */
function factLines(facts: NonNullable<Status['facts']>): string[] {
  const accounts = [...new Set(facts.map(({ account }) => account))];
  return [true, false].flatMap((isVerified) => {
    const byText = new Map<string, string[]>();
    for (const name of accounts) {
      const own = facts.filter(({ account, verified }) => account === name && verified === isVerified);
      const text = own.map(({ promise }) => promise).join('; ');
      if (text !== '') byText.set(text, [...(byText.get(text) ?? []), name]);
    }
    return [...byText].map(([text, names]) => {
      const of = names.length === accounts.length ? '' : ` for ${names.join(', ')}`;
      return isVerified ? `verified${of}: ${text}` : `assumed${of} (see ebb verify): ${text}`;
    });
  });
}

/** Of a daemon that has just started; one of an older version does not tell. */
function unreadText(unread: Status['unread_projects'] | undefined): string {
  if (!unread) return '';
  return unread === 1 ? '; 1 project is not read yet' : `; ${unread} projects are not read yet`;
}

/** One line for all receivers, and the remedy. */
function deadLines(dead: Status['dead_notifications']): string[] {
  const total = dead.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return [];
  const what = total === 1 ? '1 could not be sent' : `${total} could not be sent`;
  const names = dead.map(({ receiver }) => receiver).join(', ');
  return [`notifications: ${what}, to ${names}: ebb notify list says why, then ebb notify retry or drop RECEIVER`];
}

/** `daemon: worker-1:4711, leader, enforce, version 1.2.0, last seen 2026-03-02T09:00:00Z`. */
function daemonLine({ host, leader, mode, version, last_seen }: DaemonDocument): string {
  const parts = [host, ...(leader ? ['leader'] : []), mode, `version ${version}`, `last seen ${last_seen}`];
  return `daemon: ${parts.join(', ')}`;
}
