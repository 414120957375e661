import { printable } from '../../common/safe-text.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { Reason } from '../../domain/compute/reasons.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import type { FleetPlan } from '../../domain/evaluate/plan-fleet.ts';
import { changeKind, gatesOf, inWriteOrder, type Plan } from '../../domain/plan/plan.ts';
import { sum } from '../../domain/sum.ts';
import { ageText } from '../../domain/time/age.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { localInstants } from '../forecast/local-time.ts';
import { groupAlike, namesOf } from '../group-alike.ts';
import { type NotPlanned, notPlannedLines } from '../not-planned.ts';
import type { Colors } from '../terminal.ts';
import { isOnlySpread, spreads } from './staged.ts';

/**
 * The changes to make now in their order, waiting changes with their reasons, and a summary line. Computes with the same changes are one
 * entry, at the place of the first. Instants are local times of the zone. `summary` replaces both lists. The computes of `notPlanned` are not
 * in `plan`.
 */
export function describePlan(
  plan: FleetPlan,
  options: {
    colors: Colors;
    zone: string;
    summary?: readonly string[] | undefined;
    notPlanned?: readonly NotPlanned[];
  },
): string {
  const { colors, zone, summary, notPlanned = [] } = options;
  const now = inWriteOrder(plan.computes);
  const waiting = plan.computes.filter(({ plan: { verdict } }) => verdict === 'wait').toSorted(soonestFirst);
  const sections = [
    [colors.bold(`Plan for ${isoInstant(plan.atMs)} (${zone})`)],
    ...(summary?.map((text) => [text]) ?? [
      section('To change now:', now, plan.atMs, colors),
      section('Waiting:', waiting, plan.atMs, colors),
    ]),
    notPlannedLines(notPlanned),
    [colors.bold(summarise(plan, notPlanned))],
  ];
  const text = sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
  return localInstants(text, zone);
}

/** Such as `3 to change now (1 disconnects clients), 2 waiting (1 for ebb approve), 15 as wanted, 1 selected by no policy, 4 not planned`. */
function summarise({ computes }: FleetPlan, notPlanned: readonly NotPlanned[]): string {
  const count = (isOne: (one: EvaluatedCompute) => boolean) => computes.filter(isOne).length;
  const acting = count(({ plan }) => plan.verdict === 'act');
  const disconnecting = count(({ plan }) => plan.verdict === 'act' && plan.actions.some((one) => one.disconnects));
  const waiting = count(({ plan }) => plan.verdict === 'wait');
  const staged = count(({ plan }) => gatesOf(plan).includes('staged'));
  const unmatched = count(({ decision, plan }) => !decision.isMatched && plan.verdict === 'none');
  const parts = [
    `${acting} to change now${inBrackets([
      disconnecting > 0 && disconnectText(disconnecting),
      spreadNote(count(isRestartedLater)),
    ])}`,
    `${waiting} waiting${inBrackets([spreadNote(count(isSpread)), staged > 0 && `${staged} for ebb approve`])}`,
    `${computes.length - acting - waiting - unmatched} as wanted`,
  ];
  if (unmatched > 0) parts.push(`${unmatched} selected by no policy`);
  if (notPlanned.length > 0) parts.push(`${sum(notPlanned.map((one) => one.computes.length))} not planned`);
  return parts.join(', ');
}

function disconnectText(computes: number): string {
  return `${computes} disconnect${computes === 1 ? 's' : ''} clients`;
}

function spreadNote(computes: number): string | false {
  return computes > 0 && `${disconnectText(computes)} as soon as at_once and at_most allow`;
}

function inBrackets(notes: readonly (string | false)[]): string {
  const present = notes.filter((note) => note !== false);
  return present.length === 0 ? '' : ` (${present.join('; ')})`;
}

/** True if only a limit of restarts delays the change. Announcements count such a change as made at once. */
function isSpread({ plan }: EvaluatedCompute): boolean {
  return isOnlySpread(plan) && plan.actions.some(({ disconnects }) => disconnects);
}

/** True if the timeout is changed now, and only a limit of restarts delays the size. */
function isRestartedLater({ plan: { verdict, held = [], waiting } }: EvaluatedCompute): boolean {
  return verdict === 'act' && held.some(({ disconnects }) => disconnects) && waiting.every(({ gate }) => spreads(gate));
}

export function nameOf({ projectName, projectId, computeId }: Compute): string {
  return printable(`${projectName || projectId} / ${computeId}`);
}

function section(title: string, computes: readonly EvaluatedCompute[], atMs: number, colors: Colors): string[] {
  if (computes.length === 0) return [];
  const groups = groupAlike(computes, (one) => describeEntry(one, atMs, colors));
  return [
    colors.bold(title),
    ...groups.flatMap(({ members, shared: { sign, state, lines } }) => {
      const names = namesOf(members.map(({ compute }) => nameOf(compute)));
      return [`  ${sign} ${names}  ${state}`, ...lines];
    }),
  ];
}

function describeEntry({ compute, plan }: EvaluatedCompute, atMs: number, colors: Colors) {
  const disconnects = plan.actions.some((action) => action.disconnects);
  const effect = plan.verdict === 'act' ? 'disconnects clients' : 'would disconnect clients';
  const state = `${colors.dim(compute.state)}${disconnects ? `, ${colors.red(effect)}` : ''}`;
  const until = plan.untilMs === undefined ? [] : [`      next check at ${isoInstant(plan.untilMs)}`];
  const why = (reason: Reason) => `      ${describeReason(reason, colors)}`;
  const waiting = plan.waiting.flatMap(({ why: wanted, gate }) => [
    why(wanted),
    `      ${colors.yellow('waits')}: ${describeReason(gate, colors)}`,
  ]);
  const guards = guardLines(plan, atMs).map((line) => `      ${line}`);
  return { sign: signOf(plan, colors), state, lines: [...plan.why.map(why), ...waiting, ...guards, ...until] };
}

/** A line for each guard of the lowerings: its last verdict if it is asked first, and what an undo would cost. */
export function guardLines({ guards = [] }: Plan, atMs: number): string[] {
  return guards.map(({ policy, remedy, isAskedFirst, lowersSize, verdict }) => {
    const age = verdict.atMs === undefined ? '' : `, ${ageText(verdict.atMs, atMs)}`;
    const role = isAskedFirst ? `is asked first: ${verdict.state}${age}` : 'watches it afterwards';
    return printable(`guard ${policy} ${role}${lowersSize ? UNDO_OF_SIZE[remedy] : ''}`);
  });
}

const UNDO_OF_SIZE = {
  notify: '',
  undo: '; an undo of the size waits until it next sleeps',
  undo_with_restart: '; an undo of the size restarts it and drops its connections',
} as const;

export function describeReason({ code, message }: Reason, colors: Colors): string {
  return `${printable(message)} ${colors.dim(`[${code}]`)}`;
}

/** The mark before an entry. */
export function signOf({ verdict, actions }: Plan, colors: Colors): string {
  if (verdict === 'wait') return colors.yellow('…');
  return { raise: colors.green('↑'), lower: colors.cyan('↓'), timeout: '~', restart: '↻' }[changeKind(actions)];
}

/** Sorts by the end of the wait; unknown ends last. */
function soonestFirst(a: EvaluatedCompute, b: EvaluatedCompute): number {
  const [first = Number.MAX_VALUE, second = Number.MAX_VALUE] = [a.plan.untilMs, b.plan.untilMs];
  return first - second;
}
