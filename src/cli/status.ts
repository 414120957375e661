import { Command } from 'commander';
import { stagedInReports } from '../app/situation/staged-parts.ts';
import { counted, countedComputes, firstNames } from '../common/names.ts';
import { printable } from '../common/safe-text.ts';
import { formatUsd } from '../domain/compute/cost.ts';
import { REASONS } from '../domain/compute/reasons.ts';
import { savedRange, savingOrCost } from '../domain/estimate.ts';
import { shortHash } from '../domain/policy/policy.ts';
import { isRecentReport, recentReports } from '../domain/records/recovery-times.ts';
import { amountText, stepText } from '../domain/spend/terms.ts';
import { sum } from '../domain/sum.ts';
import { ageText } from '../domain/time/age.ts';
import { msOfIso } from '../domain/time/units.ts';
import { type FilterFlags, withFilterFlags } from './filter.ts';
import { groupAlike } from './group-alike.ts';
import { type AccessFlags, type Answer, answered, withAccessFlags, withOperator } from './operator/access.ts';
import { selectorOf } from './operator/parse-flags.ts';
import { describeFreeze, describeHold, printLines } from './operator/show.ts';
import { writeJson } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb status
  $ ebb status --url http://127.0.0.1:9464      ask that daemon
  $ ebb status --json | jq .waiting

With an embedded store it asks the daemon that has it open. On Redis and Postgres it reads the store: the daemons, whether
they were ready when they reported last and their problems with policies, and the changes that wait by the leader's last report.
The current state of computes is not there: --url shows more, and --owner and --select need it.`;

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
    // Older daemons do not send all fields.
    ...(status.unmet_headroom ?? []).map(
      ({ compute_id, message }) => `not enough connections: ${compute_id}: ${message}`,
    ),
    ...daemonLines(status),
    ...costLines(status.costs ?? null),
    ...budgetLines(status.budgets ?? [], status.at),
    ...[staged ?? [], status.staged_teams ?? []].flat().map(({ message }) => `staged: ${message}`),
    ...deadLines(status.dead_notifications ?? []),
    ...(status.api_limits ?? []).map(({ account, message }) => `rate limit of ${printable(account)}: ${message}`),
    ...refusedLines(status.refused_projects ?? []),
    ...(status.policy_problems ?? []).map((problem) => `policies: ${problem}`),
    ...status.waiting.map(({ reason, computes }) => `waiting (${reason}): ${computes}${whyText(reason)}`),
    ...freezes.map((one) => `frozen until ${one.expires_at}: ${describeFreeze(one)}; ${one.owner}: ${one.reason}`),
    ...holds.map(
      (one) => `held until ${one.expires_at}: ${one.compute_id}, ${describeHold(one)}; ${one.owner}: ${one.reason}`,
    ),
    ...(status.manual_changes ?? []).map(({ compute_id, message }) => `by hand: ${compute_id}: ${message}`),
    ...guardLines(status),
    ...stopped_fights.map(
      ({ compute_id, fields }) =>
        `left alone: ${compute_id}, ${fields.join(' and ')}: changed back too often; ebb release ${compute_id}`,
    ),
    ...degraded.map(({ compute_id, message }) => `degraded: ${compute_id}: ${message}`),
    ...factLines(status.facts ?? []),
  ];
}

/** The guards with their verdicts, the computes that they watch, and the floors that they set, with the cost. Older daemons send less. */
function guardLines({ guards, guard_watches: watches, guard_floors: floors }: Status): string[] {
  return [
    ...(guards ?? []).map(({ guard, asked_at: asked, healthy, bad, unknown, watched, held_back: held }) => {
      const verdicts = `${healthy} healthy, ${bad} bad, ${unknown} unknown${asked === null ? '' : ` at ${asked}`}`;
      return `guard ${printable(guard)}: ${verdicts}; watches ${watched}, holds ${held} back`;
    }),
    ...(watches ?? []).map(
      ({ compute_id, guard, message }) => `watched: ${compute_id} by ${printable(guard)} ${message}`,
    ),
    ...(floors ?? []).map(({ compute_id, message, cost_month: cost }) => {
      const costs = cost ? `; it costs ${floorCostText(cost)} a month` : '';
      return `taken back: ${compute_id}: ${message}${costs}; ebb release ${compute_id} --guard`;
    }),
  ];
}

function floorCostText({ cu_hours: hours, usd }: FloorCost): string {
  const inHours = `${estimateText(hours, String)} CU-hours`;
  return usd ? `${estimateText(usd, formatUsd)}, ${inHours},` : inHours;
}

type FloorCost = NonNullable<NonNullable<Status['guard_floors']>[number]['cost_month']>;

function daemonLines(status: Status): string[] {
  const { source, mode, set_hash, revision, policies, computes, unread_projects, projects, readiness, daemons } =
    status;
  const counts = Object.entries(computes).map(([name, count]) => `${count} ${name}`);
  const set =
    set_hash === null ? [] : [`policy set: ${shortHash(set_hash)}${revision === null ? '' : `, ${revision}`}`];
  const bad = readiness?.checks.filter(({ ok }) => !ok) ?? [];
  const recent = recentReports(daemons ?? [], msOfIso(status.at));
  return [
    ...(source === 'store' ? [storeText(daemons)] : []),
    ...(mode === null ? [] : [`mode: ${mode}`]),
    ...(daemons ?? []).map((one) => daemonLine(one, status.at)),
    ...stagedInReports(recent).map(({ message }) => `staged: ${message}`),
    ...set,
    ...(policies === null ? [] : [`policies: ${policies.map(({ name }) => name).join(', ') || 'none'}`]),
    `computes: ${counts.join(', ') || 'none'}${unreadText(unread_projects)}`,
    ...(readiness?.ready ? [`ready${readText(projects)}`] : []),
    ...bad.map(({ name, message }) => `not ready: ${name}: ${message}`),
    ...recent.flatMap((one) => reportedReadiness(one, status.at)),
  ];
}

/** Says if a daemon was ready at its last report, and how long ago that report was. Older daemons do not report readiness. */
function reportedReadiness(report: DaemonDocument, at: string): string[] {
  const { host, readiness, last_seen: lastSeen } = report;
  const ago = ageText(msOfIso(lastSeen), msOfIso(at));
  if (!isRecentReport(report, msOfIso(at))) return [`not ready: no daemon has reported since ${lastSeen}, ${ago}`];
  if (!readiness) return [];
  // Only the leader knows the whole fleet for certain.
  if (readiness.ready) return [`ready: ${host}, ${ago}${readText(report.leader ? report.projects : null)}`];
  return readiness.checks.map(({ name, message }) => `not ready: ${name}: ${message} (${host}, ${ago})`);
}

/** `refused: web-1: can't be changed: 403: no; since 2026-03-02T08:00:00Z`. Projects with the same answer share a line. */
function refusedLines(refused: NonNullable<Status['refused_projects']>): string[] {
  return groupAlike(refused, ({ message }) => message).map(({ members, shared: message }) => {
    const names = firstNames(members.map((one) => printable(one.project_name)));
    const which = members.length === 1 ? names : `${members.length} projects (${names})`;
    const [since] = members.map((one) => one.since).toSorted();
    return `refused: ${which}: ${printable(message)}; since ${since}`;
  });
}

function storeText(daemons: Status['daemons']): string {
  return daemons?.length
    ? 'from the store, as its daemons reported last; --url asks one'
    : 'from the store; no daemon has reported in the last day';
}

/** Verified and assumed facts about the control API. Accounts with the same facts share a line. */
function factLines(facts: NonNullable<Status['facts']>): string[] {
  const accounts = [...new Set(facts.map(({ account }) => account))];
  return [true, false].flatMap((isVerified) => {
    const textOf = (name: string) => {
      const own = facts.filter(({ account, verified }) => account === name && verified === isVerified);
      return own.map(({ promise }) => promise).join('; ');
    };
    return groupAlike(accounts, textOf).flatMap(({ members: names, shared: text }) => {
      if (text === '') return [];
      const whose = names.length === accounts.length ? '' : ` for ${names.join(', ')}`;
      return [isVerified ? `verified${whose}: ${text}` : `assumed${whose} (see ebb verify): ${text}`];
    });
  });
}

/** How many projects a daemon has not read yet, as just after its start. Older versions do not send the number. */
function unreadText(unread: Status['unread_projects'] | undefined): string {
  if (!unread) return '';
  return unread === 1 ? '; 1 project is not read yet' : `; ${unread} projects are not read yet`;
}

/** The meaning of a reason code; empty for a code that only a newer daemon knows. */
function whyText(code: string): string {
  const why: string | undefined = (REASONS as Readonly<Record<string, string>>)[code];
  return why === undefined ? '' : `; ${why.replaceAll('`', '')}`;
}

/** Daemons are ready before they have read the whole fleet. Older versions do not send the numbers. */
function readText(projects: Status['projects'] | undefined): string {
  if (!projects || projects.read >= projects.listed) return '';
  return `; ${projects.read} of ${counted(projects.listed, 'project')} read so far`;
}

/** One line for the notifications that could not be sent, with the remedy. */
function deadLines(dead: Status['dead_notifications']): string[] {
  const total = sum(dead.map(({ count }) => count));
  if (total === 0) return [];
  const names = dead.map(({ receiver }) => receiver).join(', ');
  const remedy = 'ebb notify list says why, then ebb notify retry or drop RECEIVER';
  return [`notifications: ${total} could not be sent, to ${names}: ${remedy}`];
}

/** `daemon: worker-1:4711, leader, enforce, version 1.2.0, last seen 2026-03-02T09:00:00Z`. The report of a killed daemon stays for a day. */
function daemonLine(report: DaemonDocument, at: string): string {
  const { host, leader, mode, version, last_seen } = report;
  const silence = isRecentReport(report, msOfIso(at)) ? [] : ['not heard of since'];
  const parts = [host, ...(leader ? ['leader'] : []), mode, `version ${version}`, `last seen ${last_seen}`, ...silence];
  return `daemon: ${parts.join(', ')}`;
}

/** A line for each budget: spent and projected amounts, and the active steps. */
function budgetLines(budgets: Status['budgets'], at: string): string[] {
  return budgets.map(({ budget, account, month, spent, projected, limiting }) => {
    const percent = (value: number) => `${Math.round((100 * value) / month.amount)} %`;
    const used =
      spent === null ? 'spent unknown: set plan: in ebb.yaml' : `${percent(spent)} of ${amountText(month)} spent`;
    const whole = projected
      ? `, ${percent(projected.low)} to ${percent(projected.high)} by the end of the month`
      : ', the whole month unknown yet';
    const steps = limiting.map((step) => stepText(step) + (step.until <= at ? ' (ended)' : ''));
    const limits = steps.length > 0 ? `; limits: ${steps.join(', ')}` : '';
    return `budget ${printable(budget)} (${printable(account)}): ${used}${whole}${limits}`;
  });
}

const MAX_OWNERS = 10;

const WHY_UNKNOWN = {
  too_few_days: ': less than a week is known',
  too_wide: ': its days vary too much, or too many hours are unknown',
  unsaid: '',
};

/** This month's cost, with a line for each owner. Empty until something has been measured. */
export function costLines(costs: Status['costs']): string[] {
  if (costs === null) return [];
  const { owners, total, from, known_until: until, unread_projects: unread = 0 } = costs;
  const shown = owners.slice(0, MAX_OWNERS).map((one) => `  ${printable(one.owner)}: ${costText(one)}`);
  const more = owners.length > MAX_OWNERS ? [`  and ${owners.length - MAX_OWNERS} more: ebb cost`] : [];
  const anomalies = owners.flatMap(({ owner, anomaly }) =>
    anomaly
      ? [
          `spend anomaly: ${printable(owner)} used ${anomaly.cu_hours} CU-hours on ${anomaly.day}, ordinarily at most ${anomaly.ordinary_cu_hours}`,
        ]
      : [],
  );
  return [
    ...anomalies,
    `compute since ${from.slice(0, 10)} (${until < from ? 'nothing known yet' : `known until ${until.slice(0, 16)}Z`}): ${costText(total)}`,
    ...(unread > 0 ? [`  by owner, without ${counted(unread, 'project')} not read yet:`] : []),
    ...shown,
    ...more,
    ...savedLines(costs.would_have_saved ?? null),
  ];
}

function savedLines(saved: NonNullable<Status['costs']>['would_have_saved']): string[] {
  if (saved === null) return [];
  const { cu_hours: hours, usd, used_cu_hours: used } = saved;
  const does = savingOrCost(usd ?? hours).isCost ? 'cost' : 'saved';
  const dollars = usd ? savedText(usd, formatUsd) : 'an unknown amount of dollars (set plan: in ebb.yaml)';
  const inHours = (one: typeof hours) => savedText(one, String);
  const parts = saved.parts.map(({ part, figure, cu_hours: own }) =>
    figure === 'unknown' ? `by ${part} unknown` : `by ${part} ${inHours(own)} (${figure.replace('_', ' ')})`,
  );
  return [
    `enforcing would have ${does} ${dollars} in the last two weeks, for ${countedComputes(saved.computes)} with known usage`,
    `in CU-hours: ${inHours(hours)} of ${used} used: ${parts.join(', ')}`,
  ];
}

/** `12 (8 to 20)`, or `12 (8 to 20) more` where more is used than saved. */
function savedText(saving: Parameters<typeof estimateText>[0], format: (value: number) => string): string {
  const { isCost, low, mid, high } = savingOrCost(saving);
  if (low >= 0) return `${estimateText({ low, mid, high }, format)}${isCost ? ' more' : ''}`;
  const range = savedRange(saving, format);
  return mid === undefined ? range : `${format(mid)}${isCost ? ' more' : ''} (${range})`;
}

/** `12 (8 to 20)`, or `8 to 20`. */
function estimateText(
  { low, mid, high }: { low: number; mid?: number | undefined; high: number },
  format: (value: number) => string,
) {
  const range = `${format(low)} to ${format(high)}`;
  return mid === undefined ? range : `${format(mid)} (${range})`;
}

/** `$12.30 so far, $40.00 to $52.10 by the end of the month`. */
function costText(costs: NonNullable<Status['costs']>['total']): string {
  const { cu_hours: hours, usd, unknown_hours: unknown, projected_usd: projected } = costs;
  const unknownText = unknown > 0 ? `, ${Math.round(unknown)} hours unknown` : '';
  if (usd === null) return `${hours} CU-hours so far${unknownText}, price unknown: set plan: in ebb.yaml`;
  const month = projected
    ? `, ${formatUsd(projected.low)} to ${formatUsd(projected.high)} by the end of the month`
    : `, the whole month unknown yet${WHY_UNKNOWN[costs.not_projected ?? 'unsaid']}`;
  return `${formatUsd(usd)} so far${unknownText}${month}`;
}
