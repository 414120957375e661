import type { AccountFacts } from '../compute/account-facts.ts';
import {
  type Compute,
  type ComputeSettings,
  type Desired,
  FIELD_GROUPS,
  type FieldGroup,
  hasSettings,
  isRaise,
  wantedFields,
} from '../compute/compute.ts';
import { formatChange } from '../compute/compute-units.ts';
import type { ReasonCode } from '../compute/reasons.ts';
import type { Decision } from '../decide/decide.ts';
import { isBeyond } from '../decide/stages/limits.ts';
import { describeStep, type TraceStep } from '../decide/trace.ts';
import { RESTORE } from '../overrides/restore.ts';
import type { RestartWindow } from '../policy/directive.ts';
import type { ManualChanges, PartialDisruption } from '../policy/disruption.ts';

/** A difference between a compute's present and wanted settings in one group of fields, or a restart that is due. */
export interface Change {
  group: FieldGroup | 'restart';
  /** Empty for a restart. */
  fields: Partial<ComputeSettings>;
  /** True if the change, made now, would restart the compute and so drop its connections. */
  disconnects: boolean;
  /** True for a raise of the size; false for a smaller size, a timeout and a restart. */
  raises: boolean;
  /** The policy, hold or restore that wants the change. */
  policy: string;
  priority: number;
  /** True if only observing policies want the change. */
  isObserved: boolean;
  /** True if connections are so scarce that the change does not wait. */
  urgent: boolean;
  /** True if the present value is beyond hard limits, so that not even a manual change prevents this change. */
  hard: boolean;
  disruption?: PartialDisruption;
  manualChanges?: ManualChanges;
  /** When a person set the hold that wants the change; absent for other changes, also for a restore. Milliseconds since the epoch. */
  askedAtMs?: number;
  /** The opening of the window that wants the change; milliseconds since the epoch. */
  windowStartMs?: number;
  /** A restart waits until fewer connections than this are open. */
  connectionsBelow?: number;
  /** Why the change is wanted. */
  code: ReasonCode;
  message: string;
}

/** The rules for a hold, and for a restore with `now`: they wait neither for sleep, nor after a restart, nor for a newly discovered compute. */
const WITHOUT_WAITING: PartialDisruption = {
  cooldownMs: 0,
  newlyDiscovered: 'act',
  raise: { when: 'any', atDeadline: 'apply' },
  lower: { when: 'any', atDeadline: 'apply' },
};

/** Lists the changes that enforcing policies want. In a group without one, lists the change that observing policies want; a gate holds it. */
export function changesOf(decision: Decision, compute: Compute, verified: AccountFacts = {}): Change[] {
  const { enforcedDeciders, deciders } = decision;
  const changes = FIELD_GROUPS.flatMap((group) => {
    const disconnects = compute.state !== 'idle' && (group === 'size' || verified.timeout_change === 'restarts');
    const context = { decision, compute, disconnects };
    const enforced = changeOf(group, decision.enforced, enforcedDeciders[group], context);
    if (enforced) return [enforced];
    const observed = changeOf(group, decision.desired, deciders[group], context);
    return observed ? [{ ...observed, isObserved: true }] : [];
  });
  const restart = restartOf(decision, compute);
  return restart ? [...changes, restart] : changes;
}

function changeOf(
  group: FieldGroup,
  desired: Desired,
  decider: TraceStep | undefined,
  { decision, compute, disconnects }: { decision: Decision; compute: Compute; disconnects: boolean },
): Change | undefined {
  const fields = wantedFields(group, desired);
  if (decider === undefined || fields === undefined || hasSettings(compute, fields)) return undefined;
  const { policy, hold, restore } = decider;
  const windowStartMs = decider.proposal?.openSinceMs;
  const raises = desired.size !== null && group === 'size' && isRaise(compute, desired.size);
  return {
    group,
    fields,
    disconnects,
    raises,
    policy: deciderName(decider),
    priority: policy?.priority ?? Number.MAX_SAFE_INTEGER,
    isObserved: false,
    urgent: decision.urgent && raises,
    hard: decision.hardLimits.some((limits) => isBeyond(limits, group, compute)),
    ...(policy?.disruption && { disruption: policy.disruption }),
    ...(hold && { disruption: WITHOUT_WAITING, askedAtMs: hold.createdAtMs }),
    ...(restore?.now && { disruption: WITHOUT_WAITING }),
    ...(policy?.manualChanges && { manualChanges: policy.manualChanges }),
    ...(windowStartMs !== undefined && { windowStartMs }),
    code: decider.code,
    message: `${formatChange(compute, fields)}: ${describeStep(decider)}`,
  };
}

function deciderName({ policy, hold, restore }: TraceStep): string {
  if (policy) return policy.name;
  return restore ? RESTORE : `hold ${hold?.id}`;
}

function restartOf({ restart, instantMs }: Decision, compute: Compute): Change | undefined {
  if (!restart || !isRestartDue(restart, compute, instantMs)) return undefined;
  const { policy, connectionsBelow } = restart;
  return {
    group: 'restart',
    fields: {},
    disconnects: true,
    raises: false,
    policy: policy.name,
    priority: policy.priority,
    isObserved: policy.mode === 'observe',
    urgent: false,
    hard: false,
    ...(policy.disruption && { disruption: policy.disruption }),
    ...(connectionsBelow !== undefined && { connectionsBelow }),
    code: 'restart_due',
    message: `restart: the window of ${policy.name} is open`,
  };
}

/**
 * True if a restart is due in an open window: the compute was last started at least `every` ago or, without `every`, before the window opened.
 * Never for a sleeping compute, since waking restarts it. Never for a compute with an unknown start, since it would be restarted repeatedly.
 */
function isRestartDue({ everyMs, openSinceMs }: RestartWindow, compute: Compute, instantMs: number): boolean {
  const { state, disabled, startedAtMs } = compute;
  if (state === 'idle' || disabled || startedAtMs === undefined) return false;
  return everyMs === undefined ? startedAtMs < openSinceMs : instantMs - startedAtMs >= everyMs;
}
