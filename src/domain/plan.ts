import { type Compute, type ComputeSettings, hasSettings, type Size } from './compute.ts';
import { type Decision, type Desired, describeOpinion, type FieldGroup } from './decide.ts';
import type { Change, GateInput, Held } from './gates/gate.ts';
import { GATES } from './gates/gates.ts';
import type { Opinion } from './opinion.ts';
import type { Reason, ReasonCode } from './reasons.ts';
import { formatSize, formatSuspendTimeout } from './settings-text.ts';

/** One call to the control API: all changed fields of a compute go in one PATCH. */
export interface Action {
  kind: 'update';
  fields: Partial<ComputeSettings>;
  /** True if it restarts the compute and drops its connections. */
  disconnects: boolean;
  raises: boolean;
  /** The policy that decided; of several the one that decided the size. */
  policy: string;
  priority: number;
}

/**
 * What to do about a compute now. `act`: these actions; `wait`: these actions, later, at `untilMs` if that is known;
 * `none`: nothing. Every plan says why.
 */
export interface Plan {
  verdict: 'act' | 'wait' | 'none';
  actions: Action[];
  /** When to look again, as far as a gate knows it; also where a part may be done now. Milliseconds since the epoch. */
  untilMs?: number;
  /** Why; what is done first, then what waits with the gate that holds it. */
  reasons: Reason[];
  /** The gates that hold something back, empty unless something waits. */
  heldBy: ReasonCode[];
}

export interface PlanInput extends Omit<GateInput, 'change'> {
  decision: Decision;
}

/** What to do now so that a compute has what was decided, each difference held back by the first gate that says so. Pure. */
export function plan(input: PlanInput): Plan {
  const changes = changesOf(input.decision, input.compute);
  if (changes.length === 0) return { verdict: 'none', actions: [], reasons: [nothingToDo(input.decision)], heldBy: [] };
  const judged = changes.map((change) => ({ change, held: firstGate({ ...input, change }) }));
  const passing = judged.flatMap(({ change, held }) => (held ? [] : [change]));
  const waiting = judged.flatMap(({ change, held }) => (held ? [{ change, held }] : []));
  const untils = waiting.flatMap(({ held }) => held.untilMs ?? []);
  const separate = input.record?.oneFieldGroupAtATime === true;
  return {
    verdict: passing.length > 0 ? 'act' : 'wait',
    actions: passing.length > 0 ? [mergeChanges(separate ? passing.slice(0, 1) : passing)] : [mergeChanges(changes)],
    reasons: [
      ...passing.map(whyWanted),
      ...waiting.flatMap(({ change, held }) => [whyWanted(change), whyHeld(change, held)]),
    ],
    heldBy: waiting.map(({ held }) => held.code),
    ...(untils.length > 0 && { untilMs: Math.min(...untils) }),
  };
}

function firstGate(input: GateInput): Held | undefined {
  for (const gate of GATES) {
    const held = gate(input);
    if (held) return held;
  }
  return undefined;
}

/** What differs. Where enforcing policies want nothing, what observing ones want is shown, and held by its gate. */
function changesOf(decision: Decision, compute: Compute): Change[] {
  return (['size', 'suspend_timeout'] as const).flatMap((group) => {
    const enforced = changeOf(group, decision.enforced, decision.enforcedDeciders[group], compute);
    const change = enforced ?? changeOf(group, decision.desired, decision.deciders[group], compute);
    return change ? [change] : [];
  });
}

function changeOf(
  group: FieldGroup,
  desired: Desired,
  decider: Opinion | undefined,
  compute: Compute,
): Change | undefined {
  const fields = fieldsOf(group, desired);
  if (decider === undefined || fields === undefined || hasSettings(compute, fields)) return undefined;
  return {
    group,
    fields,
    disconnects: group === 'size' && compute.state !== 'idle',
    raises: desired.size !== null && group === 'size' && isRaise(compute, desired.size),
    policy: decider.policy.name,
    priority: decider.policy.priority,
    observed: decider.policy.mode === 'observe',
    code: decider.source === 'otherwise' ? 'otherwise' : 'window_open',
    message: `${describeChange(group, compute, fields)}: ${describeOpinion(decider)}`,
  };
}

function fieldsOf(group: FieldGroup, desired: Desired): Partial<ComputeSettings> | undefined {
  if (group === 'size') return desired.size ?? undefined;
  return desired.suspendTimeoutSeconds === null ? undefined : { suspendTimeoutSeconds: desired.suspendTimeoutSeconds };
}

/** One end up and the other down counts as a lowering if the maximum falls, else as a raise. */
function isRaise(from: Size, to: Size): boolean {
  return to.maxCu === from.maxCu ? to.minCu > from.minCu : to.maxCu > from.maxCu;
}

function describeChange(group: FieldGroup, compute: Compute, fields: Partial<ComputeSettings>): string {
  const after = { ...compute, ...fields };
  if (group === 'size') return `size ${formatSize(compute)} → ${formatSize(after)} CU`;
  return `suspend_after ${formatSuspendTimeout(compute.suspendTimeoutSeconds)} → ${formatSuspendTimeout(after.suspendTimeoutSeconds)}`;
}

function mergeChanges(changes: readonly Change[]): Action {
  const leading = changes.find((change) => change.group === 'size') ?? changes[0];
  return {
    kind: 'update',
    fields: Object.assign({}, ...changes.map((change) => change.fields)),
    disconnects: changes.some((change) => change.disconnects),
    raises: changes.some((change) => change.raises),
    policy: leading?.policy ?? '',
    priority: leading?.priority ?? 0,
  };
}

function nothingToDo(decision: Decision): Reason {
  if (!decision.matched) return { code: 'unmatched', message: 'no policy selects this compute' };
  const silent = decision.desired.size === null && decision.desired.suspendTimeoutSeconds === null;
  if (silent) return { code: 'no_opinion', message: 'no policy has an opinion now' };
  return { code: 'nothing_to_do', message: 'the compute already has what is wanted' };
}

function whyWanted({ code, policy, message }: Change): Reason {
  return { code, policy, message };
}

function whyHeld({ policy }: Change, { code, message }: Held): Reason {
  return { code, policy, message };
}
