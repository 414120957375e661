import { type Compute, type ComputeSettings, fieldsOf } from '../compute/compute.ts';
import type { Reason, ReasonCode } from '../compute/reasons.ts';
import type { PartialDisruption } from '../policy/disruption.ts';
import { notLoadedAmong } from '../policy/team-parts.ts';
import { isLateEffect } from '../records/failures.ts';
import { isLower } from '../records/lowerings.ts';
import { type Change, changesOf } from './change.ts';
import type { GateInput, GuardVerdict, Objection } from './gates/gate.ts';
import { GATES } from './gates/gates.ts';
import { asksGuards } from './gates/guard.ts';
import { describeFields } from './manual-changes.ts';

/** One call to the control API. An update has all changed fields of a compute. */
export interface Action {
  kind: 'update' | 'restart';
  /** Empty for a restart. */
  fields: Partial<ComputeSettings>;
  /** True if the call restarts the compute and so drops its connections. */
  disconnects: boolean;
  raises: boolean;
  /** Set if connections are so scarce that the call does not wait for a restart permit. */
  urgent?: true;
  /** The deciding policy; the one that decides the size if there are several. */
  policy: string;
  priority: number;
  /** Disruption rules of the deciding policy or budget step; missing fields are as in the settings. */
  disruption?: PartialDisruption;
  /** Set if the call overwrites a manual change after a trial's period; that does not count as a fight. */
  endsRespect?: true;
}

/**
 * The plan for a compute now. `act`: take these actions now. `wait`: take them later, at `untilMs` if that is known. `none`: there is nothing to
 * do.
 */
export interface Plan {
  verdict: 'act' | 'wait' | 'none';
  /** In order; the second begins only after the first has ended. */
  actions: Action[];
  /** The actions for waiting changes; absent if none wait. */
  held?: Action[];
  /** When to retry waiting changes, if a gate knows; milliseconds since the epoch. */
  untilMs?: number;
  /** Reasons for the actions to take now or, for `none`, why there is nothing to do. */
  why: Reason[];
  /** The changes that gates hold back. */
  waiting: WaitingChange[];
  /** The guards of the plan's lowerings; absent if there are none. */
  guards?: LoweringGuard[];
}

/** A guard that watches a compute after a lowering. */
export interface LoweringGuard extends GuardVerdict {
  /** True if it is also asked before the lowering, since the lowering would restart an awake compute. */
  isAskedFirst: boolean;
  /** True if the size is lowered, not only the timeout. */
  lowersSize: boolean;
}

/** A change that is held back: why it is wanted, and why the gate holds it. */
export interface WaitingChange {
  group?: Change['group'];
  why: Reason;
  gate: Reason;
  /** The end of the gate, if it is known; milliseconds since the epoch. */
  untilMs?: number;
}

/** All reasons of a plan: of actions first, then of waiting changes, each followed by its gate. */
export function reasonsOf({ why, waiting }: Plan): Reason[] {
  return [...why, ...waiting.flatMap(({ why: wanted, gate }) => [wanted, gate])];
}

/** The reasons of one of the plan's actions: `restart_due` belongs to the restart, all others to the update. */
export function whyOf({ why }: Pick<Plan, 'why'>, { kind }: Pick<Action, 'kind'>): Reason[] {
  return why.filter(({ code }) => (code === 'restart_due') === (kind === 'restart'));
}

/** The reason codes of the gates that hold changes back. */
export function gatesOf({ waiting }: Plan): ReasonCode[] {
  return waiting.map(({ gate }) => gate.code);
}

type PlanInput = Omit<GateInput, 'change'>;

/** Plans the actions that give a compute its decided settings. The first gate that objects to a change holds it. Pure. */
export function plan(input: PlanInput): Plan {
  const changes = changesOf(input.decision, input.compute, input.verified);
  if (changes.length === 0) return { verdict: 'none', actions: [], why: [nothingToDo(input)], waiting: [] };
  const gated = gatedChanges(input, changes);
  const passing = withoutNeedlessRestart(gated.flatMap(({ change, objection }) => (objection ? [] : [change])));
  const waiting = gated.flatMap(({ change, objection }) => (objection ? [{ change, objection }] : []));
  const retryTimes = waiting.flatMap(({ objection }) => objection.untilMs ?? []);
  const acting = input.record?.oneFieldGroupAtATime ? passing.slice(0, 1) : passing;
  const guards = guardsOf(input, changes);
  return {
    verdict: passing.length > 0 ? 'act' : 'wait',
    actions: withEndedRespect(input, actionsFor(passing.length > 0 ? acting : changes)),
    why: acting.flatMap((change) => [whyWanted(change), ...whyAgain(input, change)]),
    waiting: waiting.map(({ change, objection: { code, message, untilMs } }) => ({
      group: change.group,
      why: whyWanted(change),
      gate: { code, policy: change.policy, message },
      ...(untilMs !== undefined && { untilMs }),
    })),
    ...(waiting.length > 0 && { held: actionsFor(waiting.map(({ change }) => change)) }),
    ...(retryTimes.length > 0 && { untilMs: Math.min(...retryTimes) }),
    ...(guards.length > 0 && { guards }),
  };
}

/** The guards that will watch the lowerings among the changes. Lowerings by holds, or by policies that only observe, are not watched. */
function guardsOf({ guards, compute }: PlanInput, changes: readonly Change[]): LoweringGuard[] {
  const lowerings = changes.filter(
    ({ group, fields, isObserved, askedAtMs }) =>
      group !== 'restart' && !isObserved && askedAtMs === undefined && isLower(fields, fieldsOf(group, compute) ?? {}),
  );
  if (lowerings.length === 0) return [];
  const isAskedFirst = lowerings.some(asksGuards);
  const lowersSize = lowerings.some(({ group }) => group === 'size');
  return guards.map((one) => ({ ...one, isAskedFirst, lowersSize }));
}

/** Marks updates that overwrite a manual change after a trial respected it until the end of its period. */
function withEndedRespect({ trial, record }: PlanInput, actions: Action[]): Action[] {
  const marks = Object.values(record?.manual ?? {});
  if (!trial || !marks.some(({ seenAtMs }) => trial.periodEndMs(seenAtMs) !== undefined)) return actions;
  return actions.map((action) => (action.kind === 'update' ? { ...action, endsRespect: true } : action));
}

/** The changes with the first objection to each. A new timeout sent with a size that restarts the compute adds no restart. */
function gatedChanges(input: PlanInput, changes: readonly Change[]) {
  const gated: { change: Change; objection: Objection | undefined }[] = [];
  for (const each of changes) {
    const isBesideRestart = gated.some(({ change, objection }) => change.disconnects && !objection);
    const change = each.group === 'suspend_timeout' && isBesideRestart ? { ...each, disconnects: false } : each;
    const gateInput = { ...input, change };
    let objection: Objection | undefined;
    for (const gate of GATES) objection ??= gate(gateInput);
    gated.push({ change, objection });
  }
  return gated;
}

/** Drops the restart if another change already restarts the compute. */
function withoutNeedlessRestart(changes: readonly Change[]): readonly Change[] {
  const restarts = changes.some(({ group, disconnects }) => disconnects && group !== 'restart');
  return restarts ? changes.filter(({ group }) => group !== 'restart') : changes;
}

function actionsFor(changes: readonly Change[]): Action[] {
  return (['update', 'restart'] as const).flatMap((kind) => {
    const ofKind = changes.filter(({ group }) => (group === 'restart') === (kind === 'restart'));
    return ofKind.length > 0 ? [mergeChanges(kind, ofKind)] : [];
  });
}

function mergeChanges(kind: Action['kind'], changes: readonly Change[]): Action {
  // The change of the size, if any, comes first.
  const [leading] = changes;
  return {
    kind,
    fields: Object.assign({}, ...changes.map((change) => change.fields)),
    disconnects: changes.some((change) => change.disconnects),
    raises: changes.some((change) => change.raises),
    ...(changes.some((change) => change.urgent) && { urgent: true }),
    policy: leading?.policy ?? '',
    priority: leading?.priority ?? 0,
    ...(leading?.disconnects && leading.disruption && { disruption: leading.disruption }),
  };
}

function nothingToDo({ decision }: PlanInput): Reason {
  const unread = notLoadedAmong(decision.freezes);
  if (unread) {
    const message = `the policies of team ${unread.team} are staged or can't be read here: what they want is not known`;
    return { code: 'policies_unread', message };
  }
  if (!decision.isMatched) {
    if (decision.trace.every(({ code }) => code !== 'selection_unknown'))
      return { code: 'unmatched', message: 'no policy selects this compute' };
    const message = 'a policy may select this compute, but its branch or the name of its project is not known';
    return { code: 'selection_unknown', message };
  }
  const hasNoValue = decision.desired.size === null && decision.desired.suspendTimeoutSeconds === null;
  if (hasNoValue) return { code: 'no_value', message: 'no policy sets a value now' };
  return { code: 'nothing_to_do', message: 'the compute already has the desired values' };
}

function whyWanted({ code, policy, message }: Change): Reason {
  return { code, policy, message };
}

/** The reason to change a value that ebb itself has set. */
function whyAgain({ record, compute }: PlanInput, { group, policy }: Change): Reason[] {
  if (group === 'restart' || !record || !isLateEffect(record, group, compute)) return [];
  const message = `${describeFields(group, compute)} took effect late, by a change that had got no clear answer`;
  return [{ code: 'late_effect', policy, message }];
}

/** The kind of a plan's first action. */
export function changeKind([first]: readonly Action[]): 'raise' | 'lower' | 'timeout' | 'restart' {
  if (first === undefined || first.kind === 'restart') return 'restart';
  if (first.raises) return 'raise';
  return first.fields.maxCu === undefined ? 'timeout' : 'lower';
}

/** The rank of a write among the writes that are due at the same time. */
export interface WriteRank {
  priority: number;
  raises: boolean;
  /** Only an awake compute has users and costs. */
  isAwake: boolean;
  /** How much the maximum is lowered, in CU. */
  reductionCu: number;
}

/** The rank of a compute without a write. */
export const LAST_RANK: WriteRank = {
  priority: Number.NEGATIVE_INFINITY,
  raises: false,
  isAwake: false,
  reductionCu: 0,
};

export function rankOf(
  { raises, priority, fields }: Pick<Action, 'raises' | 'priority' | 'fields'>,
  { state, maxCu }: Pick<Compute, 'state' | 'maxCu'>,
): WriteRank {
  return { raises, priority, isAwake: state !== 'idle', reductionCu: Math.max(0, maxCu - (fields.maxCu ?? maxCu)) };
}

/** Compares by priority; then raises come first, then awake computes, then the changes that save most. */
export function compareRanks(a: WriteRank, b: WriteRank): number {
  return (
    b.priority - a.priority ||
    Number(b.raises) - Number(a.raises) ||
    Number(b.isAwake) - Number(a.isAwake) ||
    b.reductionCu - a.reductionCu
  );
}

/** The plans that act now, in the order in which they are written. */
export function inWriteOrder<T extends { plan: Plan; compute: Pick<Compute, 'state' | 'maxCu'> }>(
  all: readonly T[],
): T[] {
  const rank = ({ plan: { actions }, compute }: T) => (actions[0] ? rankOf(actions[0], compute) : LAST_RANK);
  return all.filter((one) => one.plan.verdict === 'act').toSorted((a, b) => compareRanks(rank(a), rank(b)));
}
