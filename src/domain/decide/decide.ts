import type { Compute, ComputeSettings, Desired, FieldGroup } from '../compute/compute.ts';
import { CONNECTION_PROFILES, type ConnectionProfile } from '../connections/connection-profile.ts';
import type { ConnectionHistory } from '../connections/connections.ts';
import { type Hold, holdsAt } from '../overrides/holds.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { Bounds, DirectiveType, FreezeWindow, RestartWindow } from '../policy/directive.ts';
import { ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy } from '../policy/policy.ts';
import type { Floors, Restore, SetBy, TrialRecords } from '../records/compute-record.ts';
import type { Arm } from '../trial/assignment.ts';
import { effectiveInTrial } from './control-group.ts';
import { clampToBudgetSteps } from './stages/budget.ts';
import { type Draft, emptyDraft, type Stage, type StageInput, stage } from './stages/draft.ts';
import { keepFloors, validFloors } from './stages/floors.ts';
import { ensureHeadroom, reportUnmet } from './stages/headroom.ts';
import { clampToHardLimits, clampToLimits } from './stages/limits.ts';
import { applyHolds, restoreBaseline } from './stages/people.ts';
import { obeyPlatform } from './stages/platform.ts';
import { decideSchedules, giveTrialBaseline } from './stages/schedules.ts';
import type { TraceStep } from './trace.ts';

export interface Decision {
  instantMs: number;
  /** The values that all policies together want, including those that only observe. */
  desired: Desired;
  /** The values that enforcing policies want; equal to `desired` where no observing policy decides. */
  enforced: Desired;
  /** The step that last set each group of {@link desired}. */
  deciders: Partial<Record<FieldGroup, TraceStep>>;
  /** The step that last set each group of {@link enforced}. */
  enforcedDeciders: Partial<Record<FieldGroup, TraceStep>>;
  /** True if a policy selects the compute, or a hold is active. */
  isMatched: boolean;
  /** True if connections are so scarce that a raise does not wait. */
  urgent: boolean;
  /** Active freezes by policies. */
  freezes: readonly FreezeWindow[];
  /** The enforcing policy that sets each group of fields, regardless of holds and restores. */
  setBy: SetBy;
  /** Active holds, newest first. */
  holds: readonly Hold[];
  /** Enforced hard limits: a manual change beyond them is reverted. */
  hardLimits: readonly Bounds[];
  /** The open restart window of highest priority, enforcing policies first; undefined if none is open. */
  restart: RestartWindow | undefined;
  trace: TraceStep[];
}

export interface DecideInput {
  policies: CompiledPolicies;
  compute: Compute;
  /** Undefined before ebb first saw the compute. */
  baseline: ComputeSettings | undefined;
  /** The stored draws of trials; those absent are drawn by the terms of the policies. */
  trials?: TrialRecords | undefined;
  floors?: Floors | undefined;
  /** Decides as if the compute were in this arm of its trial. */
  arm?: Arm | undefined;
  /** Milliseconds since the epoch. */
  instantMs: number;
  /** May include holds of other computes. */
  holds?: readonly Hold[] | undefined;
  /** A person's restore request that is valid now. Absent where it does not count, as in searches for boundaries. */
  restore?: Restore | undefined;
  /** Absent where headroom is not evaluated, as in searches for boundaries. */
  connections?: ConnectionHistory | undefined;
  /** Absent: the specification's table. */
  profile?: ConnectionProfile | undefined;
}

const allowRestart = stage(['restart'], (draft, { effective }) => {
  draft.restart = effective.restart[0];
});

const noteFreezes = stage(['freeze'], (draft, { effective }) => {
  draft.freezes = effective.freeze;
});

/** The stages in order of precedence. Source: docs/policies.md, "Which policy decides". */
const STAGE_ORDER = [
  decideSchedules,
  giveTrialBaseline,
  clampToLimits,
  clampToBudgetSteps,
  keepFloors,
  ensureHeadroom,
  restoreBaseline,
  applyHolds,
  clampToHardLimits,
  obeyPlatform,
  reportUnmet,
  allowRestart,
  noteFreezes,
] as const;

type Unhandled = Exclude<DirectiveType, (typeof STAGE_ORDER)[number]['handles'][number]>;

/** A directive type that no stage handles would be ignored; this line then does not compile and names the type. */
const STAGES: [Unhandled] extends [never] ? readonly Stage[] : Unhandled = STAGE_ORDER;

/** Decides the settings of a compute at an instant, and why. Pure. */
export function decide(input: DecideInput): Decision {
  const { policies, compute, instantMs, baseline, trials, restore, connections } = input;
  const effective = effectiveInTrial(policies, input);
  const holds = holdsAt(input.holds ?? [], compute, instantMs);
  const isMatched = holds.length > 0 || effective.isMatched;
  const stageInput = {
    compute,
    instantMs,
    budgetSteps: policies.budgetSteps,
    readyWaves: policies.readyWaves,
    baseline,
    trials,
    floors: validFloors(policies, input.floors),
    holds,
    restore,
    connections,
    profile: input.profile ?? CONNECTION_PROFILES.specification,
  };
  const allDraft = runStages({ ...stageInput, effective: effective.all });
  const enforcedDraft =
    effective.enforced === effective.all ? allDraft : runStages({ ...stageInput, effective: effective.enforced });
  return {
    instantMs,
    desired: { size: allDraft.size, suspendTimeoutSeconds: allDraft.suspendTimeoutSeconds },
    enforced: { size: enforcedDraft.size, suspendTimeoutSeconds: enforcedDraft.suspendTimeoutSeconds },
    deciders: allDraft.deciders,
    enforcedDeciders: enforcedDraft.deciders,
    isMatched,
    urgent: enforcedDraft.urgent,
    freezes: enforcedDraft.freezes,
    setBy: enforcedDraft.setBy,
    holds,
    hardLimits: enforcedDraft.hardLimits,
    restart: enforcedDraft.restart ?? allDraft.restart,
    trace: [
      ...(isMatched || restore ? allDraft.trace : [{ group: 'size', code: 'unmatched' } as const]),
      ...effective.unknown.flatMap(unknownSelectionSteps),
    ],
  };
}

/** Trace steps for a policy that may select the compute: one per group that it may change. */
function unknownSelectionSteps(policy: Policy): TraceStep[] {
  const groups = ruleOf(policy).mayChange(policy);
  const shownGroups = groups.length > 0 ? groups : (['size'] as const);
  return shownGroups.map((group) => ({ group, code: 'selection_unknown', policy }));
}

function runStages(input: StageInput<DirectiveType>): Draft {
  const draft = emptyDraft();
  for (const { run } of STAGES) run(draft, input);
  return draft;
}
