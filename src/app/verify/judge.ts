/**
 * Derives facts from evidence. Invariant: there is a value only if every reading agrees with it and with the request. Anything else, such as
 * another client on the project, gives a reason instead.
 */

import { type Compute, type ComputeSettings, hasSettings, settingsOf } from '../../domain/compute/compute.ts';
import type { ChangeAnswer, Operation, Project } from '../../ports/control-api.ts';
import type { LimitsSeen } from '../../ports/verify.ts';

/* Evidence. Instants end in `AtMs` (since the epoch, our clock); other times are monotonic milliseconds. */

/** One round of readings; fields that could not be read are absent. */
export interface Sample {
  begunMs: number;
  endedMs: number;
  compute?: Compute;
  /** Newest first. */
  operations?: readonly Operation[];
  /** The project as listed. */
  listed?: Project;
}

/** The second of two equal samples in a row: the project is at rest. */
export type Settled = Sample & Required<Pick<Sample, 'compute' | 'operations'>>;

interface Sent {
  before: Settled;
  sentAtMs: number;
  answeredMs: number;
  answeredAtMs: number;
  operations: readonly Operation[];
  seen: readonly Sample[];
}

/** A PATCH and what followed. */
export interface WatchedChange extends Sent {
  patch: Partial<ComputeSettings>;
  answer: ChangeAnswer;
}

/** A restart with two sessions; `open` tells which of them survived. */
interface WatchedRestart extends Sent {
  open: { idle: boolean; busy: boolean };
}

/** A client that ran a statement and left, and the readings that followed. */
interface WatchedActivity {
  before: Settled;
  usedAtMs: number;
  leftMs: number;
  leftAtMs: number;
  seen: readonly Sample[];
}

/** The value of a fact that one run of an experiment shows, or why the run shows none. */
export type Outcome = { value: string; seconds?: number } | { why: string };

/** A change counts as shown at once if a reading that ended within this time after the answer shows it. */
export const AT_ONCE_MS = 15_000;
/** Readings that began this long after the answer must show a change that is shown at once. */
const SHOWN_MS = 2_000;
/** A change counts as never shown if a list that began this long after the answer lacks it. */
export const NOT_SHOWN_MS = 60_000;
/** How far instants of the API may be off: they are in whole seconds, and by another clock. */
const TOLERANCE_MS = 5_000;
/** Instants of the API are useless if the clocks differ by more than this. */
const MAX_SKEW_MS = 60_000;
const FEWEST_READINGS = 3;

const because = (why: string): Outcome => ({ why });
const has = (operations: readonly Operation[], action: string) => operations.some((one) => one.action === action);

/** Why the readings can't be attributed to the request; undefined if they can. */
function disturbance({ before, operations, seen }: Sent, wanted: ComputeSettings) {
  const computes = seen.flatMap(({ compute }) => compute ?? []);
  const lists = seen.flatMap((sample) => (sample.operations ? [sample.operations] : []));
  const last = lists.at(-1);
  if (computes.length < FEWEST_READINGS || last === undefined) return 'too few readings were answered';
  if (!computes.every((compute) => hasSettings(compute, wanted)))
    return 'readings show other settings than were sent: another client has changed them, or readings lag';
  const known = new Set([...before.operations, ...operations].map(({ operationId }) => operationId));
  const other = lists.flat().find(({ operationId }) => !known.has(operationId));
  if (other) return `an operation ran that the answer does not name: ${other.action}`;
  const ended = new Map(last.map(({ operationId, outcome }) => [operationId, outcome]));
  if (operations.some(({ operationId }) => ended.get(operationId) !== 'succeeded'))
    return 'the list of operations does not show the end of an operation that the answer names';
  const names = [before, ...seen].flatMap(({ listed }) => listed?.name ?? []);
  if (new Set(names).size > 1) return 'the project was renamed meanwhile';
  return undefined;
}

/** Like {@link disturbance}, for a change: the answer must have the requested values, and nothing may touch a sleeping compute after it. */
function disturbanceOfChange(change: WatchedChange): string | undefined {
  const { before, patch, answer, seen } = change;
  const wanted = { ...settingsOf(before.compute), ...patch };
  if (!hasSettings(answer.settings, wanted)) return 'the answer does not have the values that were sent';
  const why = disturbance(change, wanted);
  if (why !== undefined || answer.operations.length > 0 || before.compute.state !== 'idle') return why;
  const touched = seen.some(({ compute }) => compute && compute.updatedAtMs !== answer.updatedAtMs);
  return touched ? 'the compute was changed again meanwhile' : undefined;
}

/** True if the compute was started; undefined if readings contradict each other. */
function hasStarted({ before, operations, seen }: Sent) {
  const { startedAtMs } = before.compute;
  const starts = seen.flatMap(({ compute }) => (compute ? [compute.startedAtMs] : []));
  const isNamed = has(operations, 'start_compute');
  if (isNamed && starts.length > 0 && starts.at(-1) !== startedAtMs) return true;
  if (!isNamed && !has(operations, 'suspend_compute') && starts.every((one) => one === startedAtMs)) return false;
  return undefined;
}

const CONTRADICTION = 'the answer, the operations and the readings contradict each other';

export function judgeIdleResize(change: WatchedChange): Outcome {
  const why = disturbanceOfChange(change);
  if (why !== undefined) return because(why);
  const { before, seen } = change;
  const states = seen.flatMap(({ compute }) => (compute ? [compute.state, compute.pendingState ?? 'idle'] : []));
  if (before.compute.state !== 'idle') return because('the compute was not asleep');
  const started = hasStarted(change);
  if (started) return { value: 'wakes' };
  return started === false && states.every((state) => state === 'idle') ? { value: 'stays' } : because(CONTRADICTION);
}

export function judgeTimeoutChange(change: WatchedChange): Outcome {
  const why = disturbanceOfChange(change);
  if (why !== undefined) return because(why);
  const { before, operations, seen } = change;
  const states = seen.flatMap(({ compute }) => compute?.state ?? []);
  if (before.compute.state !== 'active' || states.at(-1) !== 'active') return because('the compute did not stay awake');
  const started = hasStarted(change);
  if (started) return has(operations, 'suspend_compute') ? { value: 'restarts' } : because(CONTRADICTION);
  return started === false && states.every((state) => state === 'active') ? { value: 'stays' } : because(CONTRADICTION);
}

export function judgeComputeUpdatedAt(change: WatchedChange): Outcome {
  const why = disturbanceOfChange(change);
  if (why !== undefined) return because(why);
  const { before, answer, sentAtMs, answeredAtMs, seen } = change;
  const { updatedAtMs: beforeMs } = before.compute;
  const { updatedAtMs: afterMs } = answer;
  if (beforeMs === undefined || afterMs === undefined) return because('the API shows no updated_at');
  const shown = seen.flatMap(({ compute }) => (compute ? [compute.updatedAtMs] : []));
  if (afterMs === beforeMs) return shown.every((one) => one === beforeMs) ? { value: 'stays' } : because(CONTRADICTION);
  const isNow = afterMs >= sentAtMs - MAX_SKEW_MS && afterMs <= answeredAtMs + MAX_SKEW_MS;
  const isKept = afterMs > beforeMs && shown.every((one) => one !== undefined && one >= afterMs);
  return isNow && isKept ? { value: 'moves' } : because(CONTRADICTION);
}

/** The list shows a change if `updated_at` is the time of the change, or of the operations that it started. */
export function judgeListUpdatedAt(change: WatchedChange): Outcome {
  const why = disturbanceOfChange(change);
  if (why !== undefined) return because(why);
  const { before, answer, sentAtMs, answeredAtMs, answeredMs, seen } = change;
  const { listed } = before;
  const lists = seen.flatMap((sample) => (sample.listed ? [{ ...sample, listed: sample.listed }] : []));
  if (!listed || lists.length === 0) return because('this key cannot read the list of projects');
  const changedAtMs = answer.updatedAtMs === before.compute.updatedAtMs ? undefined : answer.updatedAtMs;
  const ends = (seen.findLast(({ operations }) => operations)?.operations ?? [])
    .filter(({ operationId }) => answer.operations.some((one) => one.operationId === operationId))
    .map(({ updatedAtMs }) => updatedAtMs);
  const fromMs = (changedAtMs ?? sentAtMs) - TOLERANCE_MS;
  const toMs = Math.max(changedAtMs ?? answeredAtMs, ...ends) + TOLERANCE_MS;
  const isShown = ({ listed: { updatedAtMs } }: (typeof lists)[number]) => updatedAtMs >= fromMs && updatedAtMs <= toMs;
  if (listed.updatedAtMs >= fromMs) return because('the list showed a change before one was made');
  if (lists.some((one) => one.listed.updatedAtMs > toMs)) return because('the list shows a change that was not made');
  return shownAfter(lists, isShown, answeredMs);
}

/** Judges when readings begin to show something: at once (`moves`), later (`late`), or not within a minute (`stays`). */
function shownAfter<S extends Sample>(
  samples: readonly S[],
  isShown: (sample: S) => boolean,
  answeredMs: number,
): Outcome {
  const first = samples.findIndex(isShown);
  if (first >= 0 && !samples.slice(first).every(isShown)) return because(CONTRADICTION);
  const shown = samples[first];
  const missed = samples.filter((one) => !isShown(one) && one.begunMs >= answeredMs + SHOWN_MS);
  if (!shown) {
    const isLong = missed.some(({ begunMs }) => begunMs >= answeredMs + NOT_SHOWN_MS);
    return isLong ? { value: 'stays' } : because('it was not watched for long enough');
  }
  const seconds = Math.round((shown.endedMs - answeredMs) / 1000);
  if (shown.endedMs <= answeredMs + AT_ONCE_MS) return { value: 'moves', seconds };
  const isMissed = missed.some(({ begunMs }) => begunMs >= answeredMs + AT_ONCE_MS - SHOWN_MS);
  return isMissed ? { value: 'late', seconds } : because('no list was answered in time');
}

export function judgeLastActive({ before, usedAtMs, leftMs, leftAtMs, seen }: WatchedActivity): Outcome {
  const earliestMs = usedAtMs - TOLERANCE_MS;
  const shown = ({ compute, listed }: Sample) => [
    ...(compute ? [compute.lastActiveAtMs ?? 0] : []),
    ...(listed ? [listed.computeLastActiveAtMs ?? 0] : []),
  ];
  const samples = seen.filter(({ compute }) => compute);
  if (shown(before).some((atMs) => atMs >= earliestMs)) return because('the compute was active just before');
  if (samples.some((one) => shown(one).some((atMs) => atMs > leftAtMs + TOLERANCE_MS)))
    return because('the compute is shown as active without our client');
  const outcome = shownAfter(samples, (one) => shown(one).every((atMs) => atMs >= earliestMs), leftMs);
  if ('why' in outcome) return outcome;
  if (outcome.value === 'moves') return { ...outcome, value: 'current' };
  return outcome.value === 'stays' ? { value: 'late' } : outcome;
}

export function judgeRestartDrops(restart: WatchedRestart): Outcome {
  const why = disturbance(restart, settingsOf(restart.before.compute));
  if (why !== undefined) return because(why);
  if (hasStarted(restart) !== true) return because('the restart was answered, but nothing was restarted');
  const { idle, busy } = restart.open;
  if (busy && !idle) return because('the session that did nothing ended, and the one with a statement did not');
  if (idle) return { value: busy ? 'none' : 'busy' };
  return { value: 'all' };
}

const FEWEST_ANSWERS = 10;

export function judgeLimits({ answers, withLimit, values }: LimitsSeen): Outcome {
  if (answers < FEWEST_ANSWERS) return because('too few requests were answered');
  if (withLimit === 0) return { value: 'untold' };
  const isNumber = (value: string) => /^\d+\b/.test(value.trim()) && Number.parseInt(value, 10) > 0;
  if (withLimit < answers / 2 || !values.every(isNumber))
    return because('only some answers carry a limit, or it is not a number');
  return { value: 'told' };
}

/** Combines runs: the value that `needed` of them agree on, if none disagrees. */
export function agreed(outcomes: readonly Outcome[], needed = 2): Outcome {
  const clean = outcomes.filter((one) => 'value' in one);
  if (new Set(clean.map(({ value }) => value)).size > 1) return because('runs of the experiment disagree');
  const [slowest] = clean.toSorted((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
  if (slowest && clean.length >= needed) return slowest;
  const failed = outcomes.findLast((one) => 'why' in one);
  return failed ?? because(outcomes.length === 0 ? 'it was not tried' : 'only one run of the experiment was clean');
}
