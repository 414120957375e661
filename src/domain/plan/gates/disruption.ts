import type { FieldGroup } from '../../compute/desired.ts';
import { type DisruptionRule, type Moment, resolveDisruption } from '../../policy/disruption.ts';
import { isoInstant } from '../../time/instants.ts';
import type { Gate, GateInput, Held } from './gate.ts';

/** What would disconnect clients waits for its moment, as long as its deadline has not passed. */
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

/** Counted from the start of the window, or of what else made it wanted; undefined where it waits for ever. */
function deadlineOf(
  { change, wantedSince }: GateInput,
  group: FieldGroup,
  { deadlineMs }: DisruptionRule,
): number | undefined {
  if (deadlineMs === undefined) return undefined;
  return Math.max(wantedSince(group), change.windowStartMs ?? Number.NEGATIVE_INFINITY) + deadlineMs;
}
