import type { Compute, FieldGroup } from '../../compute/compute.ts';
import { formatDuration } from '../../compute/compute-units.ts';
import type { CompiledPolicies } from '../../policy/compiled-policies.ts';
import { type AtMost, type DisruptionRule, type Moment, resolveDisruption } from '../../policy/disruption.ts';
import type { ComputeRecord } from '../../records/compute-record.ts';
import { isoInstant } from '../../time/units.ts';
import type { Gate, GateInput, Held } from './gate.ts';

/** A change that would disconnect clients waits for its moment until its deadline. */
export const disruption: Gate = (input) => {
  const { change } = input;
  if (!change.disconnects || change.urgent) return undefined;
  if (change.group === 'restart') return restartMoment(input);
  const rule = ruleOf(input);
  const waiting = notYet(input, rule.when);
  if (!waiting) return undefined;
  const deadlineMs = deadlineOf(input, change.group, rule);
  if (deadlineMs === undefined) return waiting;
  if (input.nowMs >= deadlineMs) return undefined;
  const message = `${waiting.message}, at the latest until ${isoInstant(deadlineMs)}`;
  return { ...waiting, message, untilMs: deadlineMs };
};

/** Past its deadline a change is made all the same, or skipped until something else is wanted, whatever moment comes. */
export const deadline: Gate = (input) => {
  const { change, nowMs, nextBoundaryAfter } = input;
  if (!change.disconnects || change.urgent || change.group === 'restart') return undefined;
  const rule = ruleOf(input);
  const deadlineMs = deadlineOf(input, change.group, rule);
  if (deadlineMs === undefined || nowMs < deadlineMs || rule.atDeadline === 'apply') return undefined;
  if (rule.when === 'any') return undefined;
  const untilMs = nextBoundaryAfter(nowMs, change.group);
  const message = 'its moment did not come before the deadline: skipped until the next boundary';
  return { code: 'deadline', message, ...(untilMs !== undefined && { untilMs }) };
};

function ruleOf({ change, disruption: ofSettings }: GateInput): DisruptionRule {
  const resolved = resolveDisruption(change.disruption, ofSettings);
  return change.raises ? resolved.raise : resolved.lower;
}

function notYet(input: GateInput, moment: Moment): Held | undefined {
  if (moment === 'any') return undefined;
  if (moment === 'idle') return { code: 'waiting_for_idle', message: 'it would disconnect clients: waiting for sleep' };
  const { quietBelow } = resolveDisruption(input.change.disruption, input.disruption);
  return notQuiet(input.connections, quietBelow);
}

function notQuiet(connections: number | undefined, below: number): Held | undefined {
  if (connections !== undefined && connections < below) return undefined;
  const known = connections === undefined ? 'the number of connections is not known' : `${connections} connections`;
  return { code: 'waiting_for_quiet', message: `${known}: waiting for fewer than ${below}` };
}

function restartMoment({ change, connections }: GateInput): Held | undefined {
  return change.connectionsBelow === undefined ? undefined : notQuiet(connections, change.connectionsBelow);
}

/** Counted from the start of the window, or of another cause of the wish; undefined where it waits for ever. */
function deadlineOf(
  { change, wantedSince }: GateInput,
  group: FieldGroup,
  { deadlineMs }: DisruptionRule,
): number | undefined {
  if (deadlineMs === undefined) return undefined;
  return Math.max(wantedSince(group), change.windowStartMs ?? Number.NEGATIVE_INFINITY) + deadlineMs;
}

/** Between two changes that restart the same compute. It never delays a raise after a lowering, nor one that is urgent. */
export const cooldown: Gate = ({ change, record, nowMs, disruption }) => {
  const last = record?.lastDisruption;
  if (!change.disconnects || change.urgent || !last) return undefined;
  if (change.raises && last.lowered) return undefined;
  const untilMs = last.atMs + resolveDisruption(change.disruption, disruption).cooldownMs;
  if (nowMs >= untilMs) return undefined;
  return {
    code: 'cooldown',
    message: `restarted at ${isoInstant(last.atMs)}; not again before ${isoInstant(untilMs)}`,
    untilMs,
  };
};

/** A policy may always disturb this many computes at once, however small its share. */
const FEWEST_AT_ONCE = 5;

/** Pause before the next try for a slot, in milliseconds. */
const NEXT_ASK_MS = 5_000;

/** Shares are fractions such as 0.29, of which 100 times is a little less than 29. */
function wholeShare(selected: number, share: number): number {
  return Math.floor(selected * share + 1e-9);
}

/** The number of a policy's computes, of those that it selects, that may be disturbed at once. */
export function atOnceAllowed(selected: number, share: number): number {
  return Math.max(FEWEST_AT_ONCE, wholeShare(selected, share));
}

/** Limits the computes of a policy that are disturbed at once, over all daemons. Urgent changes don't wait. */
export const atOnce: Gate = ({ change, nowMs, disruption, isAtOnceFull }) => {
  if (!change.disconnects || change.urgent) return undefined;
  const share = resolveDisruption(change.disruption, disruption).atOnce;
  if (!isAtOnceFull?.(change, share)) return undefined;
  const message = `as many computes of ${change.policy} as may be are being restarted`;
  return { code: 'at_once', message, untilMs: nowMs + NEXT_ASK_MS };
};

/** The number of a policy's computes, of those that it selects, that may be disturbed within the time of its `at_most`; at least one. */
export function atMostAllowed(selected: number, { share }: AtMost): number {
  return Math.max(1, wholeShare(selected, share));
}

/**
 * True if a restart counts for the limit of the policy at this place: one that it made. Older records don't say which policy it was: then
 * it counts for each that selected the compute.
 */
export function countsFor(
  policies: CompiledPolicies,
  policyIndex: number,
  { compute, last }: { compute: Compute; last: NonNullable<ComputeRecord['lastDisruption']> },
): boolean {
  if (last.policy === undefined) return policies.selects(policyIndex, compute, last.atMs);
  return policies.set.policies[policyIndex]?.name === last.policy;
}

/** As policies write it: `30% in 10m`. */
export function atMostText(limit: AtMost): string {
  return textsOf(limit).join(' in ');
}

function textsOf({ share, windowMs }: AtMost): [share: string, time: string] {
  return [`${Math.round(share * 100)}%`, formatDuration(windowMs / 1000)];
}

/** Pause while the limit is used up, in milliseconds: short compared with the limit's window. */
export function atMostRetryMs({ windowMs }: AtMost): number {
  return Math.min(60_000, Math.max(NEXT_ASK_MS, windowMs / 20));
}

/** Limits the computes of a policy that are disturbed within a time, over all daemons. Urgent changes don't wait. */
export const atMost: Gate = ({ change, nowMs, disruption, isAtMostFull }) => {
  if (!change.disconnects || change.urgent) return undefined;
  const limit = resolveDisruption(change.disruption, disruption).atMost;
  if (!limit || !isAtMostFull?.(change, limit)) return undefined;
  const [share, time] = textsOf(limit);
  const message = `${share} of the computes of ${change.policy} were restarted within ${time}, which is the most`;
  return { code: 'at_most', message, untilMs: nowMs + atMostRetryMs(limit) };
};

/** The longest wait where no boundary is in sight. */
const MOST_WAITED_MS = 24 * 60 * 60_000;

/**
 * A compute that an enforcing ebb has just discovered keeps its size while clients are connected, until it sleeps or until the next
 * boundary that concerns it: starting ebb at noon disconnects nobody. Exceptions are connections that run out, and computes of a policy
 * that says `newly_discovered: act`.
 */
export const newlyDiscovered: Gate = ({ change, record, nowMs, nextBoundaryAfter, disruption }) => {
  if (!change.disconnects || change.urgent || record?.lastApplied.maxCu !== undefined) return undefined;
  if (resolveDisruption(change.disruption, disruption).newlyDiscovered === 'act') return undefined;
  const metAtMs = record?.enforcedSinceMs ?? nowMs;
  const untilMs = nextBoundaryAfter(metAtMs) ?? metAtMs + MOST_WAITED_MS;
  if (untilMs <= nowMs) return undefined;
  const message = 'ebb has just discovered this active compute: waiting for sleep or for the next boundary';
  return { code: 'newly_discovered', message, untilMs };
};

/** Until when a compute is left alone whose project got another name then; milliseconds since the epoch. */
export function renamedUntil(atMs: number, nextBoundaryAfter: (afterMs: number) => number | undefined): number {
  return nextBoundaryAfter(atMs) ?? atMs + MOST_WAITED_MS;
}

/** By another name a project must not slip into the hands of a team before its people had time to see it. */
export const renamed: Gate = ({ change, record, nowMs, nextBoundaryAfter }) => {
  if (!record?.renamed) return undefined;
  const { from, atMs, by } = record.renamed;
  if (change.askedAtMs !== undefined && change.askedAtMs >= atMs) return undefined;
  const untilMs = renamedUntil(atMs, nextBoundaryAfter);
  if (untilMs <= nowMs) return undefined;
  const message = `its project was called "${from}" until ${isoInstant(atMs)}, and ${by.join(', ')} did not select it: waiting for the next boundary`;
  return { code: 'renamed', message, untilMs };
};
