/** The trials of a compute: their stored records, and the input of gates. Instants are milliseconds since the epoch. */

import { type Compute, FIELD_GROUPS, type FieldGroup, hasSettings, wantedFields } from '../compute/compute.ts';
import { type BoundaryInput, lastBoundary, nextBoundary } from '../decide/boundaries.ts';
import { pureDraw, trialOf, unitOf } from '../decide/control-group.ts';
import { type DecideInput, type Decision, decide } from '../decide/decide.ts';
import type { TrialGateInput } from '../plan/gates/gate.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { TrialTerms } from '../policy/directive.ts';
import { asKind, policiesOfKind } from '../policy/kinds/kinds.ts';
import type { TrialPolicy } from '../policy/kinds/trial.ts';
import { mayBeOfUnloadedTeam } from '../policy/team-parts.ts';
import type { Compliance, ComputeRecord, TrialRecord } from '../records/compute-record.ts';
import { sum } from '../sum.ts';
import { DAY_MS, isoInstant } from '../time/units.ts';
import { localDayAt } from '../time/windows/local-time.ts';
import { type Arm, armAt, periodAt, type TrialDesign, trialSpan } from '../trial/assignment.ts';
import { type LocalDay, localDays, moreComplete } from '../trial/cells.ts';
import { isStopOf, type TrialUnit } from '../trial/savings.ts';
import type { UsageBucket } from '../usage/usage.ts';

/** A compute created during a trial must be discovered within this time: later, its settings may already be ebb's. */
const DISCOVERED_WITHIN_MS = DAY_MS;

/**
 * Returns the record with the compute's trials that have begun, and without trials that the policies no longer have. A stored trial
 * stays while the policies of its team are not loaded. Returns the same record if nothing changes.
 */
export function withTrials(
  { set, selects, trialStops }: CompiledPolicies,
  compute: Compute,
  record: ComputeRecord,
  nowMs: number,
): ComputeRecord {
  const trials: [string, TrialRecord][] = [];
  for (const [index, one] of set.policies.entries()) {
    const policy = asKind(one, 'trial');
    if (!policy) continue;
    const stored = record.trials?.[policy.name];
    const mayStart = policy.mode === 'enforce' && isRunning(policy, compute, nowMs);
    if (!stored && !(mayStart && selects(index, compute, nowMs))) continue;
    const trial = stored ?? firstTrialRecord(policy, compute, record, nowMs);
    trials.push([policy.name, withStop(trial, trialStops.find((stop) => isStopOf(stop, policy))?.stoppedAtMs)]);
  }
  trials.push(...Object.entries(record.trials ?? {}).filter(([name]) => mayBeOfUnloadedTeam(set, name)));
  const isSame = trials.every(([name, trial]) => record.trials?.[name] === trial);
  if (isSame && trials.length === Object.keys(record.trials ?? {}).length) return record;
  const { trials: _before, ...rest } = record;
  return trials.length === 0 ? rest : { ...rest, trials: Object.fromEntries(trials) };
}

/** Marks a trial as stopped. The first stop counts and is never removed. */
function withStop(trial: TrialRecord, stoppedAtMs: number | undefined): TrialRecord {
  return stoppedAtMs === undefined || trial.stoppedAtMs !== undefined ? trial : { ...trial, stoppedAtMs };
}

function isRunning({ design }: TrialPolicy, compute: Compute, nowMs: number): boolean {
  return periodAt(design, { flipDelayMs: 0 }, nowMs) !== undefined && compute.createdAtMs <= nowMs;
}

/**
 * The first record of a compute in a trial. The baseline is trusted only if ebb discovered the compute before the trial, or soon after its
 * creation.
 */
function firstTrialRecord(policy: TrialPolicy, compute: Compute, record: ComputeRecord, nowMs: number): TrialRecord {
  const { fromMs } = trialSpan(policy.design);
  const isTrusted = record.firstSeenAtMs <= Math.max(fromMs, compute.createdAtMs + DISCOVERED_WITHIN_MS);
  return {
    ...pureDraw(policy, compute),
    baseline: isTrusted ? record.baseline : null,
    terms: policy.digest,
    sinceMs: nowMs,
  };
}

/** The trial of a compute for its gates; undefined if it is in no enforced trial. */
export function trialGateInput(input: DecideInput): TrialGateInput | undefined {
  const { instantMs: nowMs } = input;
  const trial = trialOf(input.policies, input);
  if (trial?.policy.mode !== 'enforce') return undefined;
  const { flips, periodEndMs } = trial;
  const inputWithoutTrial: BoundaryInput = { ...input, arm: 'treated' };
  return {
    policy: trial.policy.name,
    flips,
    periodEndMs,
    wantedInOtherArm(group) {
      // The first flip enters the control group.
      const isControl = flips.filter((flipMs) => flipMs <= nowMs).length % 2 === 1;
      return wantedFields(group, decide({ ...input, arm: isControl ? 'treated' : 'control' }).enforced);
    },
    lastBoundaryWithoutTrial: (group) => lastBoundary(inputWithoutTrial, nowMs, group),
    nextBoundaryWithoutTrial: (group) => nextBoundary(inputWithoutTrial, nowMs, group),
  };
}

/** True if a trial that has not begun will put the compute in its control group in the first period, and thereby change its size. */
export function changesSizeAtFirstFlip(
  input: Pick<DecideInput, 'policies' | 'compute' | 'baseline' | 'trials' | 'floors' | 'holds'>,
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

/** The start of a value's deadline after a flip: the last boundary without the trial, if it came at or after the flip; otherwise −Infinity. */
export function deadlineStartAfterFlip(trial: TrialGateInput | undefined, group: FieldGroup, nowMs: number): number {
  const flippedAtMs = trial?.flips.findLast((flipMs) => flipMs <= nowMs);
  if (!trial || flippedAtMs === undefined) return Number.NEGATIVE_INFINITY;
  const boundaryMs = trial.lastBoundaryWithoutTrial(group);
  return boundaryMs !== undefined && boundaryMs >= flippedAtMs ? boundaryMs : Number.NEGATIVE_INFINITY;
}

interface UnitFacts {
  /** Any compute of the unit. */
  compute: Compute;
  /** The stored trial records of the unit's computes. */
  stored: readonly TrialRecord[];
  /** The unit's usage, oldest first. */
  buckets: readonly UsageBucket[];
  /** Stored usage by local day; `buckets` take precedence where they are more complete. */
  days: ReadonlyMap<number, LocalDay>;
  owner: string;
  /** US dollars; undefined if the price is not known. */
  usdPerCuHour: number | undefined;
}

/** A unit with its usage by local day and, if it is excluded from the results, the reason. */
export function measuredUnit(terms: TrialTerms, facts: UnitFacts): TrialUnit {
  const { compute, stored, buckets, days, owner, usdPerCuHour } = facts;
  const { zone, fromDay } = terms.design;
  const [first, last] = [buckets[0], buckets.at(-1)];
  const firstDay = first ? Math.min(fromDay, localDayAt(zone, first.startMs)) : fromDay;
  const untilDay = last ? localDayAt(zone, last.startMs + last.seconds * 1000 - 1) + 1 : fromDay;
  return {
    unit: unitOf(terms, compute),
    owner,
    draw: stored[0] ?? pureDraw(terms, compute),
    leftOut: whyLeftOut(terms, facts),
    usdPerCuHour,
    usage: moreComplete(days, localDays(buckets, { zone, fromDay: firstDay, untilDay })),
  };
}

function whyLeftOut({ digest, unit, design }: TrialTerms, { stored, buckets }: UnitFacts): string | undefined {
  const untrusted = stored.find(({ baseline }) => baseline === null);
  if (untrusted) return unknownBefore(untrusted);
  if (stored.some(({ terms }) => terms !== digest)) return 'it was assigned under other terms';
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (!first || !last) return 'its usage is not known';
  const livedMs = last.startMs + last.seconds * 1000 - first.startMs;
  const rotationMs = design.oneOf * design.rotateDays * DAY_MS;
  return unit === 'branch' && livedMs < rotationMs ? 'it did not live through a whole rotation' : undefined;
}

/** Why a trial does not count a compute whose settings before it are unknown. */
export function unknownBefore({ sinceMs }: TrialRecord): string {
  return `ebb first had it in the trial at ${isoInstant(sinceMs)}, after the start: its settings before are unknown, so it is never counted`;
}

const NO_COMPLIANCE: Omit<Compliance, 'arm' | 'isKept' | 'sinceMs'> = { control: [0, 0], treated: [0, 0] };

/**
 * Returns the record with updated compliance: since when the compute has had, or not had, the settings of its arm. Pending and manual
 * changes count as non-compliance. Returns the same record while nothing changes, so that it is rarely written.
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
    const hasArmSettings = FIELD_GROUPS.every((group) => hasSettings(compute, wantedFields(group, enforced) ?? {}));
    const arm = armAt(policy.design, stored, instantMs) ?? null;
    const before = stored.kept;
    if ((before?.arm ?? null) === arm && (arm === null || before?.isKept === hasArmSettings)) continue;
    const compliance = {
      ...NO_COMPLIANCE,
      ...(before && complianceSums(before, instantMs)),
      arm,
      isKept: hasArmSettings,
      sinceMs: instantMs,
    };
    after = { ...after, trials: { ...after.trials, [policy.name]: { ...stored, kept: compliance } } };
  }
  return after;
}

/** The compliant and the total milliseconds in each arm, up to an instant. */
function complianceSums(compliance: Compliance, untilMs: number): Pick<Compliance, Arm> {
  const { arm, isKept, sinceMs, control, treated } = compliance;
  const sums = { control, treated };
  if (arm === null) return sums;
  const lastedMs = Math.max(0, untilMs - sinceMs);
  const [compliantMs, allMs] = sums[arm];
  return { ...sums, [arm]: [compliantMs + (isKept ? lastedMs : 0), allMs + lastedMs] };
}

/** For each arm, the share of time in which its computes had the settings of the arm; null if no compute was in that arm. */
export function complianceOf(
  design: TrialDesign,
  all: readonly Compliance[],
  nowMs: number,
): Record<Arm, number | null> {
  const untilMs = Math.min(nowMs, trialSpan(design).untilMs);
  const sums = all.map((compliance) => complianceSums(compliance, Math.max(untilMs, compliance.sinceMs)));
  const share = (arm: Arm) => {
    const allMs = sum(sums.map((one) => one[arm][1]));
    return allMs === 0 ? null : sum(sums.map((one) => one[arm][0])) / allMs;
  };
  return { control: share('control'), treated: share('treated') };
}
