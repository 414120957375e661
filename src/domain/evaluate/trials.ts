/** Trials of a compute, as they are remembered and as gates ask about them. Instants are milliseconds since the epoch. */

import { type Compute, type FieldGroup, hasSettings } from '../compute/compute.ts';
import { type BoundaryInput, lastBoundary, nextBoundary } from '../decide/boundaries.ts';
import { pureDraw, trialOf, unitOf } from '../decide/control-group.ts';
import { type DecideInput, type Decision, decide } from '../decide/decide.ts';
import type { TrialGateInput } from '../plan/gates/gate.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { TrialTerms } from '../policy/directive.ts';
import { asKind, policiesOfKind } from '../policy/kinds/kinds.ts';
import type { TrialPolicy } from '../policy/kinds/trial.ts';
import { mayBeOfFrozen } from '../policy/team-parts.ts';
import type { Compliance, ComputeRecord, TrialRecord } from '../records/compute-record.ts';
import { DAY_MS } from '../time/units.ts';
import { localDayAt } from '../time/windows/local-time.ts';
import { type Arm, armAt, periodAt, type TrialDesign, trialSpan } from '../trial/assignment.ts';
import { type LocalDay, localDays, moreKnown } from '../trial/cells.ts';
import type { TrialUnit } from '../trial/savings.ts';
import { isStopOf } from '../trial/savings.ts';
import type { UsageBucket } from '../usage/usage.ts';

/** A compute that is new when the trial has begun must be discovered within this time, or its settings may be ebb's own. */
const MET_WITHIN_MS = 24 * 60 * 60_000;

/**
 * A record with the compute's trials that have begun, with its settings before, and without those that the policies no longer have. A
 * stored trial stays also while the policies of its team are not loaded. The same record if nothing changes.
 */
export function withTrials(
  { set, selects, trialStops }: CompiledPolicies,
  compute: Compute,
  record: ComputeRecord,
  nowMs: number,
): ComputeRecord {
  const known = set.policies.flatMap((one, index): (readonly [string, TrialRecord])[] => {
    const policy = asKind(one, 'trial');
    if (policy === undefined) return [];
    const stored = record.trials?.[policy.name];
    const stoppedAtMs = trialStops.find((stop) => isStopOf(stop, policy))?.stoppedAtMs;
    if (stored) return [[policy.name, stopped(stored, stoppedAtMs)]];
    const begins = policy.mode === 'enforce' && selects(index, compute, nowMs) && isRunning(policy, compute, nowMs);
    if (!begins) return [];
    return [[policy.name, stopped(firstTrialRecord(policy, compute, record, nowMs), stoppedAtMs)]];
  });
  const ofFrozen = Object.entries(record.trials ?? {}).filter(([name]) => mayBeOfFrozen(set, name));
  const trials = [...known, ...ofFrozen];
  const isSame = trials.every(([name, trial]) => record.trials?.[name] === trial);
  if (isSame && trials.length === Object.keys(record.trials ?? {}).length) return record;
  const { trials: _before, ...rest } = record;
  return trials.length === 0 ? rest : { ...rest, trials: Object.fromEntries(trials) };
}

/** Once it is stopped it stays so, whatever is known later. */
function stopped(trial: TrialRecord, stoppedAtMs: number | undefined): TrialRecord {
  return stoppedAtMs === undefined || trial.stoppedAtMs !== undefined ? trial : { ...trial, stoppedAtMs };
}

function isRunning({ design }: TrialPolicy, compute: Compute, nowMs: number): boolean {
  return periodAt(design, { flipDelayMs: 0 }, nowMs) !== undefined && compute.createdAtMs <= nowMs;
}

/**
 * The settings before the trial are the baseline, if ebb had discovered the compute before it could write to it for the policies of the
 * trial.
 */
function firstTrialRecord(policy: TrialPolicy, compute: Compute, record: ComputeRecord, nowMs: number): TrialRecord {
  const { fromMs } = trialSpan(policy.design);
  const isTrusted = record.firstSeenAtMs <= Math.max(fromMs, compute.createdAtMs + MET_WITHIN_MS);
  return {
    ...pureDraw(policy, compute),
    baseline: isTrusted ? record.baseline : null,
    terms: policy.digest,
    sinceMs: nowMs,
  };
}

/** The input of gates about the trial of a compute; undefined if it is in none that may write. */
export function trialGateInput(
  {
    connections,
    profile,
    restore,
    nowMs,
  }: Pick<DecideInput, 'connections' | 'profile' | 'restore'> & { nowMs: number },
  input: BoundaryInput,
): TrialGateInput | undefined {
  const trial = trialOf(input.policies, input);
  if (trial?.policy.mode !== 'enforce') return undefined;
  const { flips, periodEndMs } = trial;
  const without: BoundaryInput = { ...input, arm: 'treated' };
  return {
    policy: trial.policy.name,
    flips,
    periodEndMs,
    wantsInOtherArm() {
      const isControl = flips.filter((flipMs) => flipMs <= nowMs).length % 2 === 1;
      const arm = isControl ? 'treated' : 'control';
      return decide({ ...input, arm, connections, profile, restore, instantMs: nowMs }).enforced.size;
    },
    lastBoundaryWithout: () => lastBoundary(without, nowMs, 'size'),
    nextBoundaryWithout: () => nextBoundary(without, nowMs, 'size'),
  };
}

/** True if the compute will be in the control group of a trial that has not begun from its first flip on, and have another size then. */
export function changesSizeAtFirstFlip(
  input: Pick<DecideInput, 'policies' | 'compute' | 'baseline' | 'trials' | 'holds'>,
  nowMs: number,
): boolean {
  const { policies, compute } = input;
  const trial = trialOf(policies, input);
  const [instantMs] = trial?.flips ?? [];
  if (trial?.policy.mode !== 'enforce' || instantMs === undefined) return false;
  if (nowMs >= trialSpan(trial.policy.design).fromMs || !trial.isControlFirst) return false;
  const { size } = decide({ ...input, instantMs }).enforced;
  return size !== null && !hasSettings(compute, size);
}

/** For deadlines, a wish that a flip has made counts from the instant at which something else would have changed it anyway. */
export function releasedAt(trial: TrialGateInput | undefined, group: FieldGroup, nowMs: number): number {
  const flippedAtMs = trial?.flips.findLast((flipMs) => flipMs <= nowMs);
  if (!trial || group !== 'size' || flippedAtMs === undefined) return Number.NEGATIVE_INFINITY;
  const boundaryMs = trial.lastBoundaryWithout();
  return boundaryMs !== undefined && boundaryMs >= flippedAtMs ? boundaryMs : Number.NEGATIVE_INFINITY;
}

/* A unit of a trial as it is measured: how it was assigned, what it used, and whether it counts. */

/** The facts about a unit. */
interface UnitFacts {
  /** One of its computes. */
  compute: Compute;
  /** The stored assignments of its computes. */
  stored: readonly TrialRecord[];
  /** Its usage, oldest first. */
  buckets: readonly UsageBucket[];
  /** Stored local days of the trial; `buckets` win where they know more. */
  days: ReadonlyMap<number, LocalDay>;
  owner: string;
  /** US dollars; undefined if the price is not known. */
  usdPerCuHour: number | undefined;
}

/** The unit with its local days, and why it is left out if it is. */
export function measuredUnit(terms: TrialTerms, facts: UnitFacts): TrialUnit {
  const { compute, stored, buckets, days, owner, usdPerCuHour } = facts;
  const { zone, fromDay } = terms.design;
  const [first, last] = [buckets[0], buckets.at(-1)];
  const begins = first ? Math.min(fromDay, localDayAt(zone, first.startMs)) : fromDay;
  const ends = last ? localDayAt(zone, last.startMs + last.seconds * 1000 - 1) + 1 : fromDay;
  return {
    unit: unitOf(terms, compute),
    owner,
    draw: stored[0] ?? pureDraw(terms, compute),
    leftOut: whyLeftOut(terms, facts),
    usdPerCuHour,
    usage: moreKnown(days, localDays(buckets, { zone, fromDay: begins, untilDay: ends })),
  };
}

function whyLeftOut({ digest, unit, design }: TrialTerms, { stored, buckets }: UnitFacts): string | undefined {
  if (stored.some(({ baseline }) => baseline === null)) return 'what it had before the trial is not known';
  if (stored.some(({ terms }) => terms !== digest)) return 'it was assigned under other terms';
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (!first || !last) return 'its usage is not known';
  const livedMs = last.startMs + last.seconds * 1000 - first.startMs;
  const rotationMs = design.oneOf * design.rotateDays * DAY_MS;
  return unit === 'branch' && livedMs < rotationMs ? 'it did not live through a whole rotation' : undefined;
}

const NOTHING: Omit<Compliance, 'arm' | 'isKept' | 'sinceMs'> = { control: [0, 0], treated: [0, 0] };

/**
 * A record with the time since when the compute has had the settings of its arm, or has not: pending and manual changes count as not. The
 * same record while that does not change, so it is rarely written.
 */
export function withCompliance(
  { set }: Pick<CompiledPolicies, 'set'>,
  compute: Compute,
  record: ComputeRecord,
  { enforced, instantMs }: Pick<Decision, 'enforced' | 'instantMs'>,
): ComputeRecord {
  let after = record;
  for (const policy of policiesOfKind(set.policies, 'trial')) {
    const stored = record.trials?.[policy.name];
    if (!stored || stored.baseline === null) continue;
    const { size, suspendTimeoutSeconds } = enforced;
    const wanted = { ...size, ...(suspendTimeoutSeconds !== null && { suspendTimeoutSeconds }) };
    const isKept = hasSettings(compute, wanted);
    const arm = armAt(policy.design, stored, instantMs) ?? null;
    const before = stored.kept;
    if ((before?.arm ?? null) === arm && (arm === null || before?.isKept === isKept)) continue;
    const kept = { ...NOTHING, ...(before && summed(before, instantMs)), arm, isKept, sinceMs: instantMs };
    after = { ...after, trials: { ...after.trials, [policy.name]: { ...stored, kept } } };
  }
  return after;
}

/** The sums up to an instant, milliseconds since the epoch. */
function summed(kept: Compliance, untilMs: number): Pick<Compliance, Arm> {
  const { arm, isKept, sinceMs, control, treated } = kept;
  const sums = { control, treated };
  if (arm === null) return sums;
  const lastedMs = Math.max(0, untilMs - sinceMs);
  const [keptMs, allMs] = sums[arm];
  return { ...sums, [arm]: [keptMs + (isKept ? lastedMs : 0), allMs + lastedMs] };
}

/** The share of the time in which computes had the settings of their arm; null where they were in no such arm. */
export function complianceOf(
  design: TrialDesign,
  all: readonly Compliance[],
  nowMs: number,
): Record<Arm, number | null> {
  const untilMs = Math.min(nowMs, trialSpan(design).untilMs);
  const sums = all.map((kept) => summed(kept, Math.max(untilMs, kept.sinceMs)));
  const share = (arm: Arm) => {
    const allMs = sums.reduce((sum, one) => sum + one[arm][1], 0);
    return allMs === 0 ? null : sums.reduce((sum, one) => sum + one[arm][0], 0) / allMs;
  };
  return { control: share('control'), treated: share('treated') };
}
