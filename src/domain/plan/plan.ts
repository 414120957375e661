import type { Compute, ComputeSettings } from '../compute/compute.ts';
import type { Reason, ReasonCode } from '../compute/reasons.ts';
import type { PartialDisruption } from '../policy/disruption.ts';
import { type Change, changesOf } from './change.ts';
import type { GateInput, Held } from './gates/gate.ts';
import { GATES } from './gates/gates.ts';

/** One call to the control API: all changed fields of a compute go in one PATCH. */
export interface Action {
  kind: 'update' | 'restart';
  /** Empty for a restart. */
  fields: Partial<ComputeSettings>;
  /** True if it restarts the compute and drops its connections. */
  disconnects: boolean;
  raises: boolean;
  /** Connections are so scarce that it waits for no slot either. */
  urgent?: true;
  /** The policy that decided; of several the one that decided the size. */
  policy: string;
  priority: number;
  /** The limits for concurrent disruptions by the policy or budget step that decides; the rest is as elsewhere. */
  disruption?: PartialDisruption;
  /** It ends a trial's respect for a manual change, which is no fight. */
  endsRespect?: true;
}

/**
 * The plan for a compute now. `act`: these actions; `wait`: these actions, later, at `untilMs` if that is known; `none`: nothing. Every
 * plan has its reasons.
 */
export interface Plan {
  verdict: 'act' | 'wait' | 'none';
  /** In their order; the second only after the first has ended. */
  actions: Action[];
  /** The waiting actions, as they would be written; absent where there are none. */
  held?: Action[];
  /** When to try again, if a gate knows; also where some actions may be done now. Milliseconds since the epoch. */
  untilMs?: number;
  /** Why the actions are made now; where nothing is to be done, why not. */
  why: Reason[];
  /** Each difference that is held back. */
  waiting: Waiting[];
}

/** A difference that is held back: why it is wanted, and the gate that holds it. */
export interface Waiting {
  why: Reason;
  gate: Reason;
}

/** All reasons of a plan: of the actions first, then of waiting changes, each with its gate. */
export function reasonsOf({ why, waiting }: Plan): Reason[] {
  return [...why, ...waiting.flatMap(({ why: wanted, gate }) => [wanted, gate])];
}

/** The gates that hold something back; empty unless something waits. */
export function gatesOf({ waiting }: Plan): ReasonCode[] {
  return waiting.map(({ gate }) => gate.code);
}

type PlanInput = Omit<GateInput, 'change'>;

/** Plans the actions that give a compute its decided settings. The first gate that objects holds a difference back. Pure. */
export function plan(input: PlanInput): Plan {
  const changes = changesOf(input.decision, input.compute);
  if (changes.length === 0) return { verdict: 'none', actions: [], why: [nothingToDo(input)], waiting: [] };
  const gated = changes.map((change) => ({ change, held: firstGate({ ...input, change }) }));
  const passing = withoutNeedlessRestart(gated.flatMap(({ change, held }) => (held ? [] : [change])));
  const waiting = gated.flatMap(({ change, held }) => (held ? [{ change, held }] : []));
  const untils = waiting.flatMap(({ held }) => held.untilMs ?? []);
  const separate = input.record?.oneFieldGroupAtATime === true;
  return {
    verdict: passing.length > 0 ? 'act' : 'wait',
    actions: withRespect(
      input,
      passing.length > 0 ? actionsFor(separate ? passing.slice(0, 1) : passing) : actionsFor(changes),
    ),
    why: passing.map(whyWanted),
    waiting: waiting.map(({ change, held }) => ({ why: whyWanted(change), gate: whyHeld(change, held) })),
    ...(waiting.length > 0 && { held: actionsFor(waiting.map(({ change }) => change)) }),
    ...(untils.length > 0 && { untilMs: Math.min(...untils) }),
  };
}

/** In a trial a manual change stays to the end of its period; a write then is no answer to it. */
function withRespect({ trial, record }: PlanInput, actions: Action[]): Action[] {
  const marks = Object.values(record?.manual ?? {});
  if (!trial || !marks.some(({ seenAtMs }) => trial.periodEndMs(seenAtMs) !== undefined)) return actions;
  return actions.map((action) => (action.kind === 'update' ? { ...action, endsRespect: true } : action));
}

/** A change that disconnects restarts the compute as well. */
function withoutNeedlessRestart(changes: readonly Change[]): readonly Change[] {
  const restarts = changes.some(({ group, disconnects }) => disconnects && group !== 'restart');
  return restarts ? changes.filter(({ group }) => group !== 'restart') : changes;
}

function firstGate(input: GateInput): Held | undefined {
  for (const gate of GATES) {
    const held = gate(input);
    if (held) return held;
  }
  return undefined;
}

function actionsFor(changes: readonly Change[]): Action[] {
  const updates = changes.filter(({ group }) => group !== 'restart');
  const restarts = changes.filter(({ group }) => group === 'restart');
  return [
    ...(updates.length > 0 ? [mergeChanges('update', updates)] : []),
    ...(restarts.length > 0 ? [mergeChanges('restart', restarts)] : []),
  ];
}

function mergeChanges(kind: Action['kind'], changes: readonly Change[]): Action {
  // The size comes first.
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
  if (!decision.matched) {
    const code = decision.trace.some((step) => step.code === 'selection_unknown') ? 'selection_unknown' : 'unmatched';
    return { code, message: UNMATCHED[code] };
  }
  const silent = decision.desired.size === null && decision.desired.suspendTimeoutSeconds === null;
  if (silent) return { code: 'no_value', message: 'no policy sets a value now' };
  return { code: 'nothing_to_do', message: 'the compute already has the desired values' };
}

const UNMATCHED = {
  unmatched: 'no policy selects this compute',
  selection_unknown: 'a policy may select this compute, but its branch or the name of its project is not known',
};

function whyWanted({ code, policy, message }: Change): Reason {
  return { code, policy, message };
}

function whyHeld({ policy }: Change, { code, message }: Held): Reason {
  return { code, policy, message };
}

/** The rank of a write among others that are due at the same time. */
export interface WriteRank {
  /** Of the policy that decides. */
  priority: number;
  raises: boolean;
  /** Only awake computes have users and costs. */
  isAwake: boolean;
  /** The reduction of the maximum, in CU. */
  takenOffCu: number;
}

/** Of a compute that nothing is written to. */
export const LAST: WriteRank = {
  ...{ raises: false, priority: Number.NEGATIVE_INFINITY, isAwake: false, takenOffCu: 0 },
};

export function rankOf(
  { raises, priority, fields }: Pick<Action, 'raises' | 'priority' | 'fields'>,
  { state, maxCu }: Pick<Compute, 'state' | 'maxCu'>,
): WriteRank {
  return { raises, priority, isAwake: state !== 'idle', takenOffCu: Math.max(0, maxCu - (fields.maxCu ?? maxCu)) };
}

/** By the priority of the policy; then raises before lowerings, awake ones first, then those that save most. */
export function compareRanks(a: WriteRank, b: WriteRank): number {
  return (
    b.priority - a.priority ||
    Number(b.raises) - Number(a.raises) ||
    Number(b.isAwake) - Number(a.isAwake) ||
    b.takenOffCu - a.takenOffCu
  );
}

/** The due changes, in the order in which they are written. */
export function inOrderOfWriting<T extends { plan: Plan; compute: Pick<Compute, 'state' | 'maxCu'> }>(
  all: readonly T[],
): T[] {
  const rank = ({ plan: { actions }, compute }: T) => (actions[0] ? rankOf(actions[0], compute) : LAST);
  return all.filter((one) => one.plan.verdict === 'act').toSorted((a, b) => compareRanks(rank(a), rank(b)));
}
