import { type Compute, FIELD_GROUPS, fieldsOf, hasSettings, wantedFields } from '../compute/compute.ts';
import { formatChange, formatSize } from '../compute/compute-units.ts';
import { describeStep } from '../decide/trace.ts';
import type { EvaluatedCompute } from '../evaluate/evaluate.ts';
import { groupBy } from '../grouping.ts';
import { describeHold, type Hold } from '../overrides/holds.ts';
import { changedSinceHold, describeManualChange } from '../plan/manual-changes.ts';
import type { ComputeRecord, GuardFinding, Intent, RestartCause } from '../records/compute-record.ts';
import { describeFailing, newlyDegraded } from '../records/failures.ts';
import { isLower } from '../records/lowerings.ts';
import { isoInstant } from '../time/units.ts';
import { inQuotes } from './coming-change.ts';
import type { Notification } from './notification.ts';

/** Two successive records of a compute; `compute` belongs to the second. `nowMs` is when the change was found. */
export interface RecordChange {
  compute: Compute;
  before: ComputeRecord;
  after: ComputeRecord;
  nowMs: number;
  /** The compute's active holds; absent: none. */
  holds?: readonly Hold[];
}

type RecordNotification = Omit<Notification, 'projectId' | 'projectName' | 'computeId'>;

/**
 * The notifications about a changed record. They depend only on the two records, so a daemon that completes the pending write of a dead
 * one reports the same.
 */
export function recordNotifications(change: RecordChange): Notification[] {
  const { projectId, projectName, computeId } = change.compute;
  const notifications = [
    ...manualChanges(change),
    ...completedWrite(change),
    ...keepsFailing(change),
    ...newFinding(change),
  ];
  const place = { projectId, projectName, computeId };
  return [...notifications.map((notification) => ({ ...notification, ...place })), ...lateChanges(change)];
}

/** Size and timeout that were changed together are one notification. */
function manualChanges({ compute: { computeId }, before, after, holds = [] }: RecordChange): RecordNotification[] {
  const groups = FIELD_GROUPS.filter((group) => {
    const seenAtMs = after.manual?.[group]?.seenAtMs;
    return seenAtMs !== undefined && seenAtMs !== before.manual?.[group]?.seenAtMs;
  });
  const bySeen = groupBy(groups, (group) => after.manual?.[group]?.seenAtMs ?? 0);
  return [...bySeen].map(([atMs, together]) => {
    const id = `manual_change:${computeId}:${together[0]}:${atMs}`;
    const texts = together.map((group) =>
      describeManualChange(group, after.lastApplied, after.manual?.[group]?.fields ?? {}),
    );
    const held = holds.find((hold) => changedSinceHold(hold, after).some((group) => together.includes(group)));
    const text = `${computeId}: ${texts.join('; ')}${held ? `; ${describeHeld(held)}` : ''}`;
    return { id, kind: 'manual_change', atMs, text, command: `ebb release ${computeId}` };
  });
}

function describeHeld(hold: Hold): string {
  const held = `${hold.owner} holds it (${describeHold(hold)}) until ${isoInstant(hold.expiresAtMs)}`;
  return `${held}: a new hold overrides the change, ebb release ends both`;
}

const WHY_UNANNOUNCED: Record<RestartCause, string> = {
  boundary: 'it was seen too late',
  person: 'a person has asked for it',
  other: 'no schedule made it due',
};

/** Reports that announced changes of an owner come late. The reports of all of these changes have the same id, so that one is queued. */
function lateChanges(change: RecordChange): RecordNotification[] {
  const { late, policy, atMs } = completedIntent(change) ?? {};
  if (!late || atMs === undefined) return [];
  const { owner, announcedAtMs, announcedToMs, slotMs = announcedAtMs, restarts, left, why } = late;
  const announced = isoInstant(announcedAtMs);
  const span = announcedToMs === undefined ? announced : `${announced} to ${isoInstant(announcedToMs)}`;
  const reason = why === undefined ? '' : `; reason: ${why}`;
  const first = change.compute.computeId;
  const firstAt = isoInstant(atMs);
  const isPlural = left === undefined || left > 1;
  const lateRestarts = isPlural ? `at most ${left ?? restarts} of ${restarts} restarts` : `1 of ${restarts} restarts`;
  const comeLate = isPlural ? `come late: from ${firstAt} on, ${first} first` : `comes late: ${first} at ${firstAt}`;
  return [
    {
      id: `change_coming:late:${owner}:${slotMs}`,
      kind: 'change_coming',
      atMs: change.nowMs,
      owner,
      ...(policy !== undefined && { policy }),
      text: `${lateRestarts} of ${owner} that were announced for ${span} ${comeLate}${reason}`,
      command: `ebb audit --owner ${inQuotes(owner)} --since ${announced}`,
    },
  ];
}

/** The pending write that took effect with this change. */
function completedIntent({ compute, before: { intent }, after }: RecordChange): Intent | undefined {
  return intent && !after.intent && tookEffect(intent, compute) ? intent : undefined;
}

/** The notifications about a pending write that took effect, and its compute. */
function completedWrite(change: RecordChange): RecordNotification[] {
  const { compute, nowMs } = change;
  const intent = completedIntent(change);
  if (!intent) return [];
  const { computeId } = compute;
  const { atMs, policy, dropped = 0, urgent, unannounced, announcedTo: toldBefore } = intent;
  const changeText = intent.fields ? `was changed to ${formatSize(compute)} CU` : 'was restarted';
  const base = { atMs: nowMs, ...(policy !== undefined && { policy }) };
  const notifications: RecordNotification[] = [];
  if (urgent) {
    const text = `${computeId} had few connections left: its size was raised at once to ${formatSize(compute)} CU`;
    notifications.push({ ...base, id: `raised_by_critical:${computeId}:${atMs}`, kind: 'raised_by_critical', text });
  }
  if (dropped > 0 || unannounced) {
    const text = `${computeId} ${changeText}, ${describeDrop(intent)}`;
    const command = unannounced ? { command: `ebb explain ${computeId}` } : {};
    const id = `connections_dropped:${computeId}:${atMs}`;
    notifications.push({
      ...base,
      id,
      kind: 'connections_dropped',
      text,
      ...command,
      ...(toldBefore && { toldBefore }),
    });
  }
  return notifications;
}

function describeDrop(intent: Intent): string {
  const { dropped = 0 } = intent;
  const counted = dropped > 0 ? ` (${dropped} when last counted)` : ', if it had any';
  return `which disconnected its clients${counted}${describeUnannounced(intent)}`;
}

function describeUnannounced({ unannounced, unannouncedWhy, announcementsLostAtMs: lostAtMs }: Intent): string {
  if (!unannounced) return '';
  const why = unannouncedWhy ?? WHY_UNANNOUNCED[unannounced];
  if (lostAtMs === undefined) return `; it was not announced: ${why}`;
  const loss = `; it is not known to have been announced: the store lost its data at ${isoInstant(lostAtMs)}`;
  return unannounced === 'boundary' ? loss : `${loss}; ${why}`;
}

function tookEffect({ fields, atMs }: Intent, compute: Compute): boolean {
  return fields ? hasSettings(compute, fields) : (compute.startedAtMs ?? atMs) >= atMs;
}

function keepsFailing({ compute: { computeId }, before, after }: RecordChange): RecordNotification[] {
  const degraded = newlyDegraded(before, after);
  if (!degraded) return [];
  const { count, lastAtMs: atMs, message, desired } = degraded;
  const text = `${describeFailing(computeId, desired)} (${count} failures, last: ${message}); it is tried again in an hour`;
  return [{ id: `degraded:${computeId}:${atMs}`, kind: 'degraded', atMs, text, command: `ebb explain ${computeId}` }];
}

function newFinding({ compute, before, after }: RecordChange): RecordNotification[] {
  const { guardFinding: finding } = after;
  if (!finding || finding.foundAtMs === before.guardFinding?.foundAtMs) return [];
  const { computeId } = compute;
  const { guard: policy, loweredAtMs, foundAtMs: atMs } = finding;
  const text = describeFinding(compute, finding);
  const command = finding.remedy === 'notify' ? `ebb explain ${computeId}` : `ebb release ${computeId} --guard`;
  return [{ id: `guard:${computeId}:${loweredAtMs}`, kind: 'guard', atMs, text, policy, command }];
}

/** The wording of a finding: `now`, when the harm is found, and `later`, when the lowering may have been undone. */
const WORDS = {
  now: {
    is: 'is',
    nothing: 'nothing is set back',
    blocked: "it can't be set back now",
    timeout: 'the timeout goes back now',
    asleep: 'the size goes back when it next sleeps',
    restarted: 'the size goes back now, which restarts it and drops its connections',
    ending: '; it is not lowered again before its policy changes, or retry of the guard, if set, is over',
  },
  later: {
    is: 'was',
    nothing: 'nothing was set back',
    blocked: 'it could not be set back then',
    timeout: 'the timeout was to go back at once',
    asleep: 'the size was to go back at its next sleep',
    restarted: 'the size was to go back at once, with a restart',
    ending: '',
  },
} as const;

/** Describes a lowering that hurt, in one sentence for people. */
export function describeFinding(compute: Compute, finding: GuardFinding, when: keyof typeof WORDS = 'now'): string {
  const { guard, loweredAtMs, badSinceMs, from, to } = finding;
  const lowering = `${formatChange({ ...compute, ...from }, to)} at ${isoInstant(loweredAtMs)}`;
  const harm = `guard ${guard} ${WORDS[when].is} bad since ${isoInstant(badSinceMs)}, after ${lowering}`;
  return `${compute.computeId}: ${harm}; ${remedyText(finding, when)}`;
}

function remedyText({ remedy, from, obstacle }: GuardFinding, when: keyof typeof WORDS): string {
  const words = WORDS[when];
  if (remedy === 'notify') return words.nothing;
  const parts = [
    ...(from.suspendTimeoutSeconds === undefined ? [] : [words.timeout]),
    ...(from.maxCu === undefined ? [] : [remedy === 'undo' ? words.asleep : words.restarted]),
  ];
  const undone = obstacle === undefined ? parts.join(', ') : `${words.blocked}: ${obstacle}`;
  return `${undone}${words.ending}`;
}

/**
 * Names the obstacles to setting the lowered values back now: freezes, holds, limits and other gates. Waiting for the compute to sleep is
 * no obstacle to an `undo`. Other waiting changes don't matter. Undefined if there is no obstacle.
 */
export function obstacleToUndo({ decision, plan, record }: EvaluatedCompute): string | undefined {
  const lowered = FIELD_GROUPS.filter((group) => !record.guardFinding || fieldsOf(group, record.guardFinding.from));
  const beyond = lowered.flatMap((group) => {
    const floor = record.floors?.[group];
    const wanted = wantedFields(group, decision.enforced);
    if (!floor || !wanted || !isLower(wanted, floor.fields)) return [];
    const last = decision.trace.findLast((step) => step.group === group && step.after !== undefined);
    return last ? [describeStep(last)] : [];
  });
  const held = plan.waiting.flatMap(({ group, why, gate }) => {
    const isUndo = why.code === 'guard_floor' && lowered.some((one) => one === group);
    return isUndo && gate.code !== 'waiting_for_idle' ? [gate.message] : [];
  });
  const obstacles = [...new Set([...beyond, ...held])];
  return obstacles.length === 0 ? undefined : obstacles.join('; ');
}
