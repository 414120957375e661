/** Replays recorded connections under a headroom policy, and under variants of its numbers. */
import { type CompiledPolicies, compilePolicies } from '../policy/compiled-policies.ts';
import type { ManualChanges, PartialDisruption } from '../policy/disruption.ts';
import type { HeadroomPolicy } from '../policy/kinds/headroom.ts';
import type { PolicySet } from '../policy/policy.ts';
import { type BacktestFigures, measure, sumOfFigures } from './measure.ts';
import { type Recording, type Replay, replay } from './replay.ts';

/** The two numbers of a headroom policy that a backtest varies. */
export interface Variant {
  targetShare: number;
  /** The stabilisation window, in milliseconds. */
  windowMs: number;
}

export interface BacktestInput {
  /** Defaults from the settings, for the fields of `disruption` that a policy leaves out. */
  disruption?: PartialDisruption | undefined;
  manualChanges?: ManualChanges | undefined;
  /** All policies, including the one under test. */
  policies: PolicySet;
  policy: HeadroomPolicy;
  /** Stored decisions of the leader; absent where they are unknown. */
  knownDecisions?: Pick<CompiledPolicies, 'budgetSteps' | 'readyWaves'> | undefined;
  recordings: readonly Recording[];
  /** Replayed in addition to the policy as written. */
  variants: readonly Variant[];
}

export interface BacktestRow extends Variant {
  figures: BacktestFigures;
}

export interface Backtest {
  asWritten: BacktestRow;
  alternatives: readonly BacktestRow[];
  /** The figures of the same computes without the policy. */
  withoutPolicy: BacktestFigures;
  /** One replay per recording, in order, under the policy as written. */
  computes: readonly (Replay & { recording: Recording; figures: BacktestFigures })[];
}

/** Runs a backtest. The policy counts as enforced, whatever its mode and `act` are. Pure. */
export function backtest(input: BacktestInput): Backtest {
  const { policies: set, policy, recordings, variants } = input;
  const writtenVariant = { targetShare: policy.targetShare, windowMs: policy.scaleDownAfterMs };
  const replayAll = (variantPolicy: HeadroomPolicy | undefined) => {
    const variantPolicies = set.policies.flatMap((other) =>
      other.name === policy.name ? (variantPolicy ?? []) : other,
    );
    const { disruption, manualChanges, knownDecisions: { budgetSteps, readyWaves } = {} } = input;
    const policies = {
      ...compilePolicies({ ...set, policies: variantPolicies }),
      ...(budgetSteps && { budgetSteps }),
      ...(readyWaves && { readyWaves }),
    };
    const rules = { policies, ...(disruption && { disruption }), ...(manualChanges && { manualChanges }) };
    return recordings.map((recording) => replay(recording, rules));
  };
  const figuresOf = (replays: readonly Replay[], targetShare: number) =>
    sumOfFigures(replays.map((replayed) => measure(replayed, targetShare)));
  const replays = replayAll(enforcedVariant(policy, writtenVariant));
  const computes = replays.map((replayed, index) => ({
    ...replayed,
    recording: recordings[index] as Recording,
    figures: measure(replayed, writtenVariant.targetShare),
  }));
  return {
    asWritten: { ...writtenVariant, figures: sumOfFigures(computes.map(({ figures }) => figures)) },
    alternatives: variants.map((variant) => ({
      ...variant,
      figures: figuresOf(replayAll(enforcedVariant(policy, variant)), variant.targetShare),
    })),
    withoutPolicy: figuresOf(replayAll(undefined), writtenVariant.targetShare),
    computes,
  };
}

function enforcedVariant(policy: HeadroomPolicy, { targetShare, windowMs }: Variant): HeadroomPolicy {
  return { ...policy, targetShare, scaleDownAfterMs: windowMs, mode: 'enforce', act: 'apply' };
}
