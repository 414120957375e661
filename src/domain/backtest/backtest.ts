/** Replays recorded connections under a headroom policy, and under variants of its numbers. */
import { type CompiledPolicies, compilePolicies } from '../policy/compiled-policies.ts';
import type { ManualChanges, PartialDisruption } from '../policy/disruption.ts';
import type { HeadroomPolicy } from '../policy/kinds/headroom.ts';
import type { PolicySet } from '../policy/policy.ts';
import { type BacktestFigures, measure, sumOfFigures } from './measure.ts';
import type { Recording } from './recording.ts';
import { type Replay, replay } from './replay.ts';

/** The two numbers of a headroom policy that are tried. */
export interface Variant {
  targetShare: number;
  /** The stabilisation window, in milliseconds. */
  windowMs: number;
}

export interface BacktestInput {
  /** The settings' defaults for policies that don't say. */
  disruption?: PartialDisruption | undefined;
  manualChanges?: ManualChanges | undefined;
  /** The policy, and the policies beside it. */
  policies: PolicySet;
  policy: HeadroomPolicy;
  /** Decisions of the leader, as far as they are known. */
  decided?: Pick<CompiledPolicies, 'budgetSteps' | 'readyWaves'> | undefined;
  recordings: readonly Recording[];
  /** Tried besides the policy as written. */
  variants: readonly Variant[];
}

export interface BacktestRow extends Variant {
  figures: BacktestFigures;
}

export interface Backtest {
  asWritten: BacktestRow;
  alternatives: readonly BacktestRow[];
  /** The same computes without the policy. */
  without: BacktestFigures;
  /** Of the policy as written, in the order of the recordings. */
  computes: readonly (Replay & { recording: Recording; figures: BacktestFigures })[];
}

/** Pure: the same recordings give the same figures. Whatever its mode and `act` are, the policy counts as enforced. */
export function backtest(input: BacktestInput): Backtest {
  const { policies: set, policy, recordings, variants } = input;
  const own = { targetShare: policy.targetShare, windowMs: policy.scaleDownAfterMs };
  const replayAll = (changed: HeadroomPolicy | undefined) => {
    const others = set.policies.flatMap((one) => (one.name === policy.name ? (changed ?? []) : one));
    const { disruption, manualChanges, decided } = input;
    const leaderDecisions = decided && { budgetSteps: decided.budgetSteps, readyWaves: decided.readyWaves };
    const policies = { ...compilePolicies({ ...set, policies: others }), ...leaderDecisions };
    const rules = { policies, ...(disruption && { disruption }), ...(manualChanges && { manualChanges }) };
    return recordings.map((recording) => replay(recording, rules));
  };
  const figuresOf = (replays: readonly Replay[], targetShare: number) =>
    sumOfFigures(replays.map((one) => measure(one, targetShare)));
  const tried = replayAll(enforced(policy, own));
  const computes = tried.map((one, index) => ({
    ...one,
    recording: recordings[index] as Recording,
    figures: measure(one, own.targetShare),
  }));
  return {
    asWritten: { ...own, figures: sumOfFigures(computes.map(({ figures }) => figures)) },
    alternatives: variants.map((variant) => ({
      ...variant,
      figures: figuresOf(replayAll(enforced(policy, variant)), variant.targetShare),
    })),
    without: figuresOf(replayAll(undefined), own.targetShare),
    computes,
  };
}

function enforced(policy: HeadroomPolicy, { targetShare, windowMs }: Variant): HeadroomPolicy {
  return { ...policy, targetShare, scaleDownAfterMs: windowMs, mode: 'enforce', act: 'apply' };
}
