import { type Compute, hasSettings } from '../compute/compute.ts';
import type { Decision } from '../decide/decide.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { policiesOfKind } from '../policy/kinds/kinds.ts';
import type { Compliance, ComputeRecord } from '../records/compute-record.ts';
import { type Arm, armAt, type TrialDesign, trialSpan } from '../trial/assignment.ts';

const NOTHING: Omit<Compliance, 'arm' | 'isKept' | 'sinceMs'> = { control: [0, 0], treated: [0, 0] };

/**
 * A record that knows since when, in trials, the compute has had what its arm is to have, or has not: what waits, or what a person has
 * set, is not kept. The same record while that does not change, so it is rarely written.
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

/** The share of the time in which computes had what their arm is to have; null where they were in no such arm. */
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
