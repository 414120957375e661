import type { Compute, ComputeSettings, Desired, FieldGroup } from '../compute/compute.ts';
import { CONNECTION_PROFILES, type ConnectionProfile } from '../connections/connection-profile.ts';
import type { ConnectionHistory } from '../connections/connections.ts';
import { type Hold, holdsAt } from '../overrides/holds.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { Bounds, DirectiveType, FreezeWindow, RestartWindow } from '../policy/directive.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy } from '../policy/policy.ts';
import type { Restore, SetBy, TrialRecords } from '../records/compute-record.ts';
import type { Arm } from '../trial/assignment.ts';
import { effectiveInTrial } from './control-group.ts';
import { clampToBudgetSteps } from './stages/budget.ts';
import { emptyDraft, type Stage, type StageInput, stage } from './stages/draft.ts';
import { ensureHeadroom, reportUnmet } from './stages/headroom.ts';
import { clampToHardLimits, clampToLimits } from './stages/limits.ts';
import { applyHolds, restoreBaseline } from './stages/people.ts';
import { obeyPlatform } from './stages/platform.ts';
import { decideSchedules, giveTrialBaseline } from './stages/schedules.ts';

import type { TraceStep } from './trace.ts';

export interface Decision {
  instantMs: number;
  /** The wish of all policies together, including those that only observe. */
  desired: Desired;
  /** The wish of the policies that may write; the same as `desired` where no observing policy decides. */
  enforced: Desired;
  /** The step that last shaped each group of {@link desired}. */
  deciders: Partial<Record<FieldGroup, TraceStep>>;
  /** The step that last shaped each group of {@link enforced}. */
  enforcedDeciders: Partial<Record<FieldGroup, TraceStep>>;
  /** True if at least one policy selects the compute. */
  matched: boolean;
  /** Connections are so scarce that a raise does not wait for a good moment. */
  urgent: boolean;
  /** Freezes of policies that are active. */
  freezes: readonly FreezeWindow[];
  /** By group of fields, the policy that may write and sets it, whatever people have said. */
  setBy: SetBy;
  /** Holds that are active, newest first. */
  holds: readonly Hold[];
  /** Hard limits that may write: a manual change beyond them does not stay. */
  hardLimits: readonly Bounds[];
  /** A restart may be made now, by the policy of the highest priority that says so; one that only observes comes last. */
  restart: RestartWindow | undefined;
  trace: TraceStep[];
}

export interface DecideInput {
  policies: CompiledPolicies;
  compute: Compute;
  /** The compute's settings when ebb first saw it; undefined before that. */
  baseline: ComputeSettings | undefined;
  /** The stored draws of trials; if absent, policies draw by themselves. */
  trials?: TrialRecords | undefined;
  /** As if the compute were in this arm of its trial. */
  arm?: Arm | undefined;
  /** Milliseconds since the epoch. */
  instantMs: number;
  /** Of any compute; those of others don't count. */
  holds?: readonly Hold[] | undefined;
  /** A person's restore request. Absent at other instants than now. */
  restore?: Restore | undefined;
  /** Counts of the compute's connections. Absent where headroom is not evaluated, as at other instants than now. */
  connections?: ConnectionHistory | undefined;
  /** The connections that a size accepts; the specification's table if absent. */
  profile?: ConnectionProfile | undefined;
}

/** Decides no value: it says if a restart may be made now. */
const allowRestart = stage(['restart'], (draft, { effective }) => {
  draft.restart = effective.restart[0];
});

/** Decides no value: the gate of freezes holds back writes. */
const noteFreezes = stage(['freeze'], (draft, { effective }) => {
  draft.freezes = effective.freeze;
});

/** The precedence of the language. Source: docs/policies.md, "Which policy decides". */
const ORDER = [
  decideSchedules,
  giveTrialBaseline,
  clampToLimits,
  clampToBudgetSteps,
  ensureHeadroom,
  restoreBaseline,
  applyHolds,
  clampToHardLimits,
  obeyPlatform,
  reportUnmet,
  allowRestart,
  noteFreezes,
] as const;

type Unhandled = Exclude<DirectiveType, (typeof ORDER)[number]['handles'][number]>;

/** A directive that no stage handles would be accepted and do nothing: then this does not compile, and names it. */
const STAGES: [Unhandled] extends [never] ? readonly Stage[] : Unhandled = ORDER;

/**
 * Decides the settings of a compute at an instant, and why. Pure: the same input gives the same decision, in the daemon, in a plan and in
 * a forecast.
 */
export function decide(input: DecideInput): Decision {
  const { compute, instantMs, trials, profile = CONNECTION_PROFILES.specification } = input;
  const effective = effectiveInTrial(input.policies, input);
  const holds = holdsAt(input.holds ?? [], compute, instantMs);
  const matched = holds.length > 0 || effective.matched;
  const { baseline, restore, connections } = input;
  const { budgetSteps, readyWaves } = input.policies;
  const about = { compute, budgetSteps, readyWaves, baseline, trials, instantMs, holds, restore, connections, profile };
  const all = runStages({ ...about, effective: effective.all });
  const enforcing = effective.enforced === effective.all ? all : runStages({ ...about, effective: effective.enforced });
  return {
    instantMs,
    desired: { size: all.size, suspendTimeoutSeconds: all.suspendTimeoutSeconds },
    enforced: { size: enforcing.size, suspendTimeoutSeconds: enforcing.suspendTimeoutSeconds },
    deciders: all.deciders,
    enforcedDeciders: enforcing.deciders,
    matched,
    urgent: enforcing.urgent,
    freezes: enforcing.freezes,
    setBy: enforcing.setBy,
    holds,
    hardLimits: enforcing.hardLimits,
    restart: enforcing.restart ?? all.restart,
    trace: [
      ...(matched || input.restore ? all.trace : [{ group: 'size', code: 'unmatched' } as const]),
      ...effective.unknown.flatMap(selectionUnknown),
    ],
  };
}

/** Noted where the policy would speak. */
function selectionUnknown(policy: Policy): TraceStep[] {
  const groups = ruleOf(policy).mayChange(policy);
  return (groups.length > 0 ? groups : (['size'] as const)).map((group) => ({
    group,
    code: 'selection_unknown',
    policy,
  }));
}

function runStages(input: StageInput<DirectiveType>) {
  const draft = emptyDraft();
  for (const { run } of STAGES) run(draft, input);
  return draft;
}
