import type { Compute, FieldGroup } from '../../compute/compute.ts';
import { formatDuration } from '../../compute/compute-units.ts';
import type { CompiledPolicies } from '../../policy/compiled-policies.ts';
import { type AtMost, type DisruptionRule, type Moment, resolveDisruption } from '../../policy/disruption.ts';
import type { ComputeRecord } from '../../records/compute-record.ts';
import { DAY_MS, isoInstant } from '../../time/units.ts';
import type { Gate, GateInput, Objection } from './gate.ts';

/** Holds a change that would disconnect clients until its condition is met, or until its deadline. */
export const disruption: Gate = (input) => {
  const { change } = input;
  if (!change.disconnects || change.urgent) return undefined;
  if (change.group === 'restart') {
    return change.connectionsBelow === undefined ? undefined : waitForQuiet(input.connections, change.connectionsBelow);
  }
  const rule = disruptionRule(input);
  const waiting = waitForMoment(input, rule.when);
  if (!waiting) return undefined;
  const deadlineMs = deadlineOf(input, change.group, rule);
  if (deadlineMs === undefined) return waiting;
  if (input.nowMs >= deadlineMs) return undefined;
  const message = `${waiting.message}, at the latest until ${isoInstant(deadlineMs)}`;
  return { ...waiting, message, untilMs: deadlineMs };
};

/** After the deadline, skips a change until the next boundary unless its rule is to apply it. */
export const deadline: Gate = (input) => {
  const { change, nowMs, nextBoundaryAfter } = input;
  if (!change.disconnects || change.urgent || change.group === 'restart') return undefined;
  const rule = disruptionRule(input);
  const deadlineMs = deadlineOf(input, change.group, rule);
  if (deadlineMs === undefined || nowMs < deadlineMs || rule.atDeadline === 'apply' || rule.when === 'any')
    return undefined;
  const untilMs = nextBoundaryAfter(nowMs, change.group);
  const message = 'its condition was not met before the deadline: skipped until the next boundary';
  return { code: 'deadline', message, ...(untilMs !== undefined && { untilMs }) };
};

function disruptionRule({ change, disruption: settingsDisruption }: GateInput): DisruptionRule {
  const resolved = resolveDisruption(change.disruption, settingsDisruption);
  return change.raises ? resolved.raise : resolved.lower;
}

function waitForMoment(input: GateInput, moment: Moment): Objection | undefined {
  if (moment === 'any') return undefined;
  if (moment === 'idle') return { code: 'waiting_for_idle', message: 'it would disconnect clients: waiting for sleep' };
  const { quietBelow } = resolveDisruption(input.change.disruption, input.disruption);
  return waitForQuiet(input.connections, quietBelow);
}

function waitForQuiet(connections: number | undefined, below: number): Objection | undefined {
  if (connections !== undefined && connections < below) return undefined;
  const count = connections === undefined ? 'the number of connections is not known' : `${connections} connections`;
  return { code: 'waiting_for_quiet', message: `${count}: waiting for fewer than ${below}` };
}

/** The deadline, counted from the opening of the window, or from when the value became wanted if that is later; undefined if there is none. */
function deadlineOf(
  { change, wantedSince }: GateInput,
  group: FieldGroup,
  { deadlineMs }: DisruptionRule,
): number | undefined {
  if (deadlineMs === undefined) return undefined;
  return Math.max(wantedSince(group), change.windowStartMs ?? Number.NEGATIVE_INFINITY) + deadlineMs;
}

/** Keeps restarts of the same compute apart. Does not delay urgent changes, a raise after a lowering, a hold, or a restore with `now`. */
export const cooldown: Gate = ({ change, record, nowMs, disruption }) => {
  const last = record?.lastDisruption;
  if (!change.disconnects || change.urgent || !last) return undefined;
  if (change.raises && last.lowered) return undefined;
  const untilMs = last.atMs + resolveDisruption(change.disruption, disruption).cooldownMs;
  if (nowMs >= untilMs) return undefined;
  const message = `restarted at ${isoInstant(last.atMs)}; not again before ${isoInstant(untilMs)}`;
  return { code: 'cooldown', message, untilMs };
};

/** The number of computes that any policy may disturb at once, however small its share is. */
const MIN_AT_ONCE = 5;

/** The pause before the next request for a restart permit, in milliseconds. */
const RETRY_MS = 5_000;

/** The whole number of computes in a share. Corrects floating-point error: 100 × 0.29 is slightly less than 29. */
function wholeShare(selected: number, share: number): number {
  return Math.floor(selected * share + 1e-9);
}

/** How many of its selected computes a policy may disturb at once. */
export function atOnceAllowed(selected: number, share: number): number {
  return Math.max(MIN_AT_ONCE, wholeShare(selected, share));
}

/** Limits how many computes a policy disturbs at once, over all daemons. Urgent changes don't wait. */
export const atOnce: Gate = ({ change, nowMs, disruption, isAtOnceReached }) => {
  if (!change.disconnects || change.urgent) return undefined;
  const share = resolveDisruption(change.disruption, disruption).atOnce;
  if (!isAtOnceReached?.(change, share)) return undefined;
  const message = `${change.policy} is restarting as many computes as it may`;
  return { code: 'at_once', message, untilMs: nowMs + RETRY_MS };
};

/** How many of its selected computes a policy may disturb within the window of its `at_most`; at least one. */
export function atMostAllowed(selected: number, { share }: AtMost): number {
  return Math.max(1, wholeShare(selected, share));
}

/**
 * True if the policy with this index made a restart, so that the restart counts towards the policy's limit. Older records lack the policy: the
 * restart then counts for each policy that selected the compute.
 */
export function countsTowardsLimit(
  policies: CompiledPolicies,
  policyIndex: number,
  { compute, last }: { compute: Compute; last: NonNullable<ComputeRecord['lastDisruption']> },
): boolean {
  if (last.policy === undefined) return policies.selects(policyIndex, compute, last.atMs);
  return policies.set.policies[policyIndex]?.name === last.policy;
}

/** The limit as policies write it: `30% in 10m`. */
export function atMostText(limit: AtMost): string {
  return atMostTexts(limit).join(' in ');
}

function atMostTexts({ share, windowMs }: AtMost): [share: string, time: string] {
  return [`${Math.round(share * 100)}%`, formatDuration(windowMs / 1000)];
}

/** The pause while the limit is used up, in milliseconds: short compared with the limit's window. */
export function atMostRetryMs({ windowMs }: AtMost): number {
  return Math.min(60_000, Math.max(RETRY_MS, windowMs / 20));
}

/** Limits how many computes a policy disturbs within a window of time, over all daemons. Urgent changes don't wait. */
export const atMost: Gate = ({ change, nowMs, disruption, isAtMostReached }) => {
  if (!change.disconnects || change.urgent) return undefined;
  const limit = resolveDisruption(change.disruption, disruption).atMost;
  if (!limit || !isAtMostReached?.(change, limit)) return undefined;
  const [share, time] = atMostTexts(limit);
  const message = `${share} of the computes of ${change.policy} were restarted within ${time}, which is its limit`;
  return { code: 'at_most', message, untilMs: nowMs + atMostRetryMs(limit) };
};

/** The longest wait of a newly discovered compute, and the wait after a rename where there is no boundary. */
const LONGEST_WAIT_MS = DAY_MS;

/**
 * Holds changes that would restart a newly discovered compute until it sleeps, until its next boundary, or for a day: so starting ebb at noon
 * disconnects nobody. Urgent raises don't wait, nor do changes by policies with `newly_discovered: act`.
 */
export const newlyDiscovered: Gate = ({ change, record, nowMs, policyBoundaryAfter, disruption }) => {
  // `lastApplied` may be a size that the compute already had when policies first wanted it. ebb did not change that.
  if (!change.disconnects || change.urgent || record?.lastChanges?.size) return undefined;
  if (resolveDisruption(change.disruption, disruption).newlyDiscovered === 'act') return undefined;
  const discoveredAtMs = record?.enforcedSinceMs ?? nowMs;
  const lastMs = discoveredAtMs + LONGEST_WAIT_MS;
  // Most computes have been known for long: for these, nothing is searched.
  if (lastMs <= nowMs) return undefined;
  const group = change.group === 'restart' ? undefined : change.group;
  const untilMs = Math.min(policyBoundaryAfter(discoveredAtMs, group) ?? lastMs, lastMs);
  if (untilMs <= nowMs) return undefined;
  const message = 'ebb has just discovered this active compute: waiting for sleep or for the next boundary';
  return { code: 'newly_discovered', message, untilMs };
};

/** The end of the wait after a project was renamed at `atMs`: the next boundary of its policies, or a day later if there is none. */
export function renamedUntil(atMs: number, policyBoundaryAfter: (afterMs: number) => number | undefined): number {
  return policyBoundaryAfter(atMs) ?? atMs + LONGEST_WAIT_MS;
}

/** Delays changes of a compute that more teams select since its project was renamed, so that people have time to notice. */
export const renamed: Gate = ({ change, record, nowMs, policyBoundaryAfter }) => {
  if (!record?.renamed) return undefined;
  const { from, atMs, by } = record.renamed;
  if (change.askedAtMs !== undefined && change.askedAtMs >= atMs) return undefined;
  const untilMs = renamedUntil(atMs, policyBoundaryAfter);
  if (untilMs <= nowMs) return undefined;
  const message = `its project was called "${from}" until ${isoInstant(atMs)}, and ${by.join(', ')} did not select it: waiting for the next boundary`;
  return { code: 'renamed', message, untilMs };
};
