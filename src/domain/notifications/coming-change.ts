import type { Compute, ComputeSettings } from '../compute/compute.ts';
import { formatDuration, formatSize } from '../compute/compute-units.ts';
import type { ReasonCode } from '../compute/reasons.ts';
import type { EvaluatedCompute } from '../evaluate/evaluate.ts';
import { type Action, changeKind, type Plan } from '../plan/plan.ts';
import type { Policy, PolicySet } from '../policy/policy.ts';
import { herdInstants, type ReadyWaves } from '../policy/waves.ts';
import { isoInstant, MINUTE_MS, SECOND_MS } from '../time/units.ts';
import { actionsOf, type Future } from './future.ts';
import type { Notification } from './notification.ts';

/** A change of a compute at its next boundary, at its next change or at the end of a wait, if its state stays as it is. */
export interface ComingChange {
  compute: Compute;
  action: Action;
  /** Milliseconds since the epoch. */
  instantMs: number;
  /**
   * Changes with the same slot and owner are announced together. A slot has the changes of one boundary and its waves, or the changes whose waits
   * end in the same quarter of an hour.
   */
  slotMs: number;
}

/** The length of a slot in milliseconds; see {@link ComingChange.slotMs}. */
export const SLOT_MS = 15 * MINUTE_MS;

/** The maximum number of boundaries of a compute that are examined, since each may take a search. */
const MAX_BOUNDARIES = 10;

/** The maximum number of ends of waits that are examined, one after the other. */
const MAX_WAITS = 10;

/** Gates that only spread or retry a change that was announced for its boundary. */
const RETRYING_GATES: ReadonlySet<ReasonCode> = new Set([
  'at_once',
  'at_most',
  'reading_lags',
  'answer_unknown',
  'retry_later',
  'degraded',
]);

interface Horizon {
  nowMs: number;
  untilMs: number;
  readyWaves: readonly ReadyWaves[];
}

/**
 * The changes of a compute whose slots begin by `untilMs`. Each is found as if the earlier ones had been made, but of several in one slot only
 * those up to the first that changes the state: what follows it is found once it has been made.
 */
export function comingChanges(evaluated: EvaluatedCompute, future: Future, horizon: Horizon): ComingChange[] {
  const { compute, decision, plan, nextBoundaryMs, nextChangeMs } = evaluated;
  let state: State = { compute, plan, startMs: decision.instantMs, nextBoundaryMs, nextChangeMs, future };
  const changes: ComingChange[] = [];
  const slots = new Set<number>();
  for (let turns = 0; turns < MAX_BOUNDARIES; turns += 1) {
    const found = changesOf(state, horizon);
    changes.push(...found.filter(({ slotMs }) => !slots.has(slotMs)));
    const last = found.at(-1);
    if (!last || !changesState(last.action)) break;
    slots.add(last.slotMs);
    const after = state.future.after(last.instantMs);
    state = {
      ...{ compute: after.compute, plan: after.plan(last.instantMs), startMs: last.instantMs, future: after },
      ...{ nextBoundaryMs: after.boundaryAfter(last.instantMs), nextChangeMs: undefined },
    };
  }
  return changes;
}

/** A compute from an instant on, milliseconds since the epoch, until the next change of its state. */
interface State {
  compute: Compute;
  startMs: number;
  plan: Plan;
  nextBoundaryMs: number | undefined;
  nextChangeMs: number | undefined;
  future: Future;
}

/** True if an action changes the size or restarts: after it the compute's state differs. */
function changesState(action: Action): boolean {
  return action.disconnects || changeKind([action]) !== 'timeout';
}

/** The changes up to the first that changes the compute's state. */
function changesOf(state: State, { nowMs, untilMs, readyWaves }: Horizon): ComingChange[] {
  const { compute, plan, startMs, nextBoundaryMs, nextChangeMs, future } = state;
  // A later wave is announced with the first of its herd.
  const slotOf = (boundaryMs: number) => Math.min(...herdInstants(readyWaves, compute.account, boundaryMs));
  const boundaries = boundariesWhile((boundaryMs) => slotOf(boundaryMs) <= untilMs, nextBoundaryMs, future);
  const mayPass = plan.waiting.some(({ gate }) => gate.code !== 'observe');
  const waitStarts = [...(mayPass ? [startMs] : []), ...boundaries];
  const waitEnds = new Set(waitStarts.flatMap((fromMs) => endsOfWaits(fromMs, { untilMs, plan: future.plan })));
  const instants = [...new Set([...waitEnds, ...boundaries, nextChangeMs])].filter((ms) => ms !== undefined);
  // Instants after `untilMs` at which no wait ends are boundaries, whose slots may begin earlier.
  const isBoundary = (ms: number) => boundaries.has(ms) || (ms > untilMs && !waitEnds.has(ms));
  const changes: ComingChange[] = [];
  for (const instantMs of instants.toSorted((a, b) => a - b)) {
    const slotMs = isBoundary(instantMs) ? slotOf(instantMs) : Math.floor(instantMs / SLOT_MS) * SLOT_MS;
    if (instantMs <= Math.max(nowMs, startMs) || slotMs > untilMs) continue;
    const [action] = actionsOf(future.plan(instantMs));
    if (!action) continue;
    changes.push({ compute, action, instantMs, slotMs });
    if (changesState(action)) break;
  }
  return changes;
}

/** The near boundaries, up to the first that changes the size or restarts the compute: after that, the state of the compute differs. */
function boundariesWhile(
  isNear: (boundaryMs: number) => boolean,
  nextBoundaryMs: number | undefined,
  future: Future,
): ReadonlySet<number> {
  const boundaries = new Set<number>();
  let boundaryMs = nextBoundaryMs;
  while (boundaryMs !== undefined && isNear(boundaryMs) && boundaries.size < MAX_BOUNDARIES) {
    boundaries.add(boundaryMs);
    const [action] = actionsOf(future.plan(boundaryMs));
    if (action && changeKind([action]) !== 'timeout') break;
    boundaryMs = future.boundaryAfter(boundaryMs);
  }
  return boundaries;
}

/**
 * The instants from `startMs` on at which gates stop holding changes, up to the first change that disconnects. There may be several: another
 * gate may hold the changes from then on. The ends of {@link RETRYING_GATES} gates are left out.
 */
function endsOfWaits(startMs: number, { untilMs, plan }: Pick<Future, 'plan'> & { untilMs: number }): number[] {
  const ends: number[] = [];
  let atMs = startMs;
  for (let steps = 0; steps < MAX_WAITS && atMs <= untilMs; steps += 1) {
    const planned = plan(atMs);
    if (actionsOf(planned).some(({ disconnects }) => disconnects)) break;
    const nextMs = planned.untilMs ?? atMs;
    if (nextMs <= atMs) break;
    if (planned.waiting.some((one) => one.untilMs === nextMs && !RETRYING_GATES.has(one.gate.code))) ends.push(nextMs);
    atMs = nextMs;
  }
  return ends;
}

/** The maximum number of computes that a message names in its text. */
const MAX_NAMED = 8;

/** The maximum number of changes in a message's JSON: so that a stored message has at most 150 KB. */
const MAX_LISTED = 500;

interface DigestInfo {
  id: string;
  owner: string;
  nowMs: number;
  /** What makes the changes due. */
  occasion?: string;
  /** What keeps them from being made at present. */
  obstacle?: string | undefined;
}

/** The notification about changes of one owner and slot, of which at least one disconnects clients. */
export function digestOfChanges(
  changes: readonly [ComingChange, ...ComingChange[]],
  { id, owner, nowMs, occasion, obstacle }: DigestInfo,
): Notification {
  const instants = changes.map(({ instantMs }) => instantMs);
  const firstMs = Math.min(...instants);
  const lastMs = Math.max(...instants);
  const policies = new Set(changes.map(({ action }) => action.policy));
  const counts = countChanges(changes);
  const [first] = changes;
  const { projectId, projectName, computeId } = first.compute;
  const span = lastMs > firstMs ? `${isoInstant(firstMs)} to ${isoInstant(lastMs)}` : isoInstant(firstMs);
  const time = `${span}, in ${leadText(firstMs - nowMs)}${occasion === undefined ? '' : `, ${occasion}`}`;
  const { text, ...rest } =
    changes.length === 1
      ? { projectId, projectName, computeId, ...textOfOne(first, time) }
      : textOfMany(changes, { counts, time, owner, instantMs: lastMs });
  return {
    id: `change_coming:${id}`,
    kind: 'change_coming',
    atMs: nowMs,
    owner,
    ...(policies.size === 1 && { policy: first.action.policy }),
    ...rest,
    text: obstacle === undefined ? text : `${text}; ${obstacle}`,
    changes: { ...counts, fromMs: firstMs, toMs: lastMs, ...listedChanges(changes) },
  };
}

/** Changes that disconnect clients come first, since people may want to prevent them. */
function listedChanges(
  changes: readonly ComingChange[],
): Pick<NonNullable<Notification['changes']>, 'list' | 'notListed'> {
  const sorted = changes.toSorted((a, b) => Number(b.action.disconnects) - Number(a.action.disconnects));
  const list = sorted.slice(0, MAX_LISTED).map(({ compute, action, instantMs: atMs }) => {
    const { fields: to, disconnects, policy } = action;
    const { projectId, computeId } = compute;
    return { projectId, computeId, atMs, policy, disconnects, from: settingsBefore(compute, to), to };
  });
  return { list, notListed: changes.length - list.length };
}

/** The present values of the settings that are changed. */
function settingsBefore(compute: Compute, changed: Partial<ComputeSettings>): Partial<ComputeSettings> {
  const keys = Object.keys(changed) as (keyof ComputeSettings)[];
  return Object.fromEntries(keys.map((key) => [key, compute[key]]));
}

function leadText(leadMs: number): string {
  const unitMs = leadMs < MINUTE_MS ? SECOND_MS : MINUTE_MS;
  return formatDuration((Math.round(leadMs / unitMs) * unitMs) / SECOND_MS);
}

function textOfOne({ compute, action }: ComingChange, time: string): Pick<Notification, 'text' | 'command'> {
  const { kind, fields, policy } = action;
  const { computeId } = compute;
  const change =
    kind === 'restart'
      ? 'restarted'
      : `changed from ${formatSize(compute)} to ${formatSize({ ...compute, ...fields })} CU`;
  return {
    text: `${computeId} will be ${change} at ${time} (${policy}), which disconnects its clients`,
    command: `ebb hold ${computeId} --for 2h --reason 'not now' --freeze`,
  };
}

function countChanges(changes: readonly ComingChange[]) {
  const countOf = (kind: ReturnType<typeof changeKind>) =>
    changes.filter(({ action }) => changeKind([action]) === kind).length;
  return {
    computes: new Set(changes.map(({ compute }) => compute.computeId)).size,
    raised: countOf('raise'),
    lowered: countOf('lower'),
    disconnecting: changes.filter(({ action }) => action.disconnects).length,
  };
}

function textOfMany(
  changes: readonly ComingChange[],
  details: { counts: ReturnType<typeof countChanges>; time: string; owner: string; instantMs: number },
): Pick<Notification, 'text' | 'command'> {
  const { counts, time, owner, instantMs } = details;
  const { computes, raised, lowered, disconnecting } = counts;
  const ids = changes.filter(({ action }) => action.disconnects).map(({ compute }) => compute.computeId);
  const isCut = ids.length > MAX_NAMED;
  const more = isCut ? `, and ${ids.length - MAX_NAMED} more` : '';
  const named = `${ids.slice(0, MAX_NAMED).join(', ')}${more}`;
  const planCommand = `ebb plan --owner ${inQuotes(owner)} --at ${isoInstant(instantMs)}`;
  // Where the names are cut, the message's command is already the plan.
  const all = isCut ? '' : ` (all: ${planCommand})`;
  const rest = computes > disconnecting ? `; others may, if awake by then${all}` : '';
  return {
    text: `${time}: ${computes} computes of ${owner}: ${raised} raised, ${lowered} lowered; ${disconnecting} restart, which disconnects their clients (${named})${rest}`,
    command: isCut ? planCommand : `ebb freeze --select computes=${ids.join()} --for 2h --reason 'not now'`,
  };
}

/** Quotes a text as one word of a shell. */
export function inQuotes(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** How long ahead a policy's changes are announced, in milliseconds; `beforeMs` is the default from the settings. Undefined: never. */
export function leadOf(
  policy: Pick<Policy, 'notifyBeforeMs'> | undefined,
  beforeMs: number | undefined,
): number | undefined {
  return policy?.notifyBeforeMs ?? beforeMs;
}

/** The longest lead of any policy, or the default, in milliseconds; 0 if nothing is announced. */
export function longestLead({ policies }: Pick<PolicySet, 'policies'>, beforeMs: number | undefined): number {
  return Math.max(0, beforeMs ?? 0, ...policies.map(({ notifyBeforeMs }) => notifyBeforeMs ?? 0));
}
