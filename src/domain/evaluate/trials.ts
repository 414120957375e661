/** Trials of a compute, as they are remembered and as gates ask about them. Instants are milliseconds since the epoch. */

import { type Compute, type FieldGroup, hasSettings } from '../compute/compute.ts';
import { type BoundaryInput, lastBoundary, nextBoundary } from '../decide/boundaries.ts';
import { pureDraw, trialOf } from '../decide/control-group.ts';
import { type DecideInput, decide } from '../decide/decide.ts';
import type { TrialGateInput } from '../plan/gates/gate.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { asKind } from '../policy/kinds/kinds.ts';
import type { TrialPolicy } from '../policy/kinds/trial.ts';
import { mayBeOfFrozen } from '../policy/team-parts.ts';
import type { ComputeRecord, TrialRecord } from '../records/compute-record.ts';
import { periodAt, trialSpan } from '../trial/assignment.ts';
import { isStopOf } from '../trial/stop.ts';

/** A compute that is new when the trial has begun is discovered within this time, or what it has may be ebb's own. */
const MET_WITHIN_MS = 24 * 60 * 60_000;

/**
 * A record that knows the trials of the compute that have begun, with what it had before, and none that the policies no longer have.
 * What is stored once stays, also while the policies of its team are not loaded. The same record if there is no news.
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
