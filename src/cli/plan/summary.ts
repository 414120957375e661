import { printable } from '../../common/safe-text.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { formatChange } from '../../domain/compute/compute-units.ts';
import { formatSaving } from '../../domain/compute/cost.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { type Action, changeKind, gatesOf } from '../../domain/plan/plan.ts';
import type { MonthChange } from '../forecast/month.ts';
import { groupAlike } from '../group-alike.ts';
import { type Colors, teamTable } from '../terminal.ts';
import { signOf } from './describe-plan.ts';

/** At most this many groups of equal changes are shown; for the others, only the number of their computes. */
const MAX_GROUPS = 12;

interface SummaryOptions {
  colors: Colors;
  ownerOf(compute: Compute): string;
  /** The monthly saving of the policies for the computes of an owner; undefined if unknown. */
  savedOf(owner: string): MonthChange | undefined;
}

/** Sums up a plan: a table by team, then the changes to make now and the waiting ones, in groups of equal changes. */
export function summarySections(computes: readonly EvaluatedCompute[], options: SummaryOptions): string[] {
  const { colors } = options;
  const concerned = computes.filter(({ plan }) => plan.verdict !== 'none');
  const sectionOf = (title: string, verdict: 'act' | 'wait') => {
    const some = concerned.filter(({ plan }) => plan.verdict === verdict);
    return some.length === 0 ? [] : [[colors.bold(title), ...groupLines(some, options)].join('\n')];
  };
  return [
    savingsTable(concerned, options),
    ...sectionOf('To change now:', 'act'),
    ...sectionOf('Waiting:', 'wait'),
    'Details: ebb plan --owner TEAM, or --all',
  ];
}

function savingsTable(concerned: readonly EvaluatedCompute[], { ownerOf, savedOf }: SummaryOptions): string {
  const cellsOf = (members: readonly EvaluatedCompute[], owner: string) => {
    const acting = members.filter(({ plan }) => plan.verdict === 'act');
    const countOf = (kind: ReturnType<typeof changeKind>) =>
      acting.filter(({ plan }) => changeKind(plan.actions) === kind).length;
    const restarts = acting.filter(({ plan }) => plan.actions.some(({ disconnects }) => disconnects)).length;
    const waiting = members.filter(({ plan }) => plan.waiting.length > 0).length;
    const counts = [countOf('raise'), countOf('lower'), countOf('timeout'), restarts, waiting];
    const saved = savedOf(owner);
    const cuHours = saved ? expected(saved.cuHours.mid, (value) => value.toFixed(0)) : '?';
    return [...counts.map(String), cuHours, saved?.usd ? expected(saved.usd.saved.mid) : '?'];
  };
  const head = ['raised', 'lowered', 'timeout', 'restarts', 'waiting', 'CU-hours/month saved', '$/month saved'];
  return teamTable(concerned, { head, ownerOf: ({ compute }) => ownerOf(compute), cellsOf });
}

/** The middle of a saving, without its range. */
function expected(mid: number, format?: (value: number) => string): string {
  return formatSaving({ low: mid, mid, high: mid }, format);
}

function groupLines(some: readonly EvaluatedCompute[], { colors, ownerOf }: SummaryOptions): string[] {
  const groups = groupAlike(some, ({ compute, plan }) => ({
    sign: signOf(plan, colors),
    change: changesText(compute, plan.actions),
    held: plan.verdict === 'act' && plan.held ? heldText(compute, plan.held, colors) : '',
    gates: gatesOf(plan),
    guards: (plan.guards ?? []).map(({ policy, isAskedFirst }) => (isAskedFirst ? `${policy}, asked first` : policy)),
    effect:
      plan.actions.some(({ disconnects }) => disconnects) && (plan.verdict === 'act' ? 'restarts' : 'would restart'),
  })).toSorted((a, b) => b.members.length - a.members.length);
  const lines = groups
    .slice(0, MAX_GROUPS)
    .map(({ shared: { sign, change, held, gates, guards, effect }, members }) => {
      const teams = groupAlike(members, ({ compute }) => ownerOf(compute));
      const named = teams.map((team) => `${printable(team.shared)} ${team.members.length}`).join(', ');
      const why = gates.length > 0 ? ` ${colors.dim(`[${[...new Set(gates)].join(', ')}]`)}` : '';
      const guarded = guards.length > 0 ? `; guard ${printable(guards.join(', '))}` : '';
      return `  ${sign} ${members.length} × ${change}${effect ? `, ${colors.red(effect)}` : ''}${held} (${named})${why}${guarded}`;
    });
  const rest = groups.slice(MAX_GROUPS).flatMap(({ members }) => members).length;
  return rest > 0 ? [...lines, `  and other changes of ${rest} computes`] : lines;
}

function changesText(compute: Compute, actions: readonly Action[]): string {
  return actions.map(({ kind, fields }) => (kind === 'restart' ? 'restart' : formatChange(compute, fields))).join(', ');
}

/** The changes that wait while others of the same compute are made now: a timeout doesn't wait for the restart that a size needs. */
function heldText(compute: Compute, held: readonly Action[], colors: Colors): string {
  const effect = held.some(({ disconnects }) => disconnects) ? `, ${colors.red('would restart')}` : '';
  return `; later ${changesText(compute, held)}${effect}`;
}
