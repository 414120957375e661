import type { CompiledPolicies } from './compiled-policies.ts';
import type { Compute, ComputeSettings } from './compute.ts';
import { CONNECTION_PROFILES, type ConnectionProfile } from './connection-profile.ts';
import type { ConnectionHistory } from './connections.ts';
import type { Desired, FieldGroup } from './desired.ts';
import { type Hold, holdsAt } from './holds.ts';
import type { LimitsPolicy } from './policy.ts';
import type { Restore } from './restore.ts';
import { emptyDraft, type Stage, type StageInput } from './stages/draft.ts';
import { ensureHeadroom, reportUnmet } from './stages/headroom.ts';
import { applyHolds } from './stages/holds.ts';
import { clampToHardLimits, clampToLimits } from './stages/limits.ts';
import { obeyPlatform } from './stages/platform.ts';
import { restoreBaseline } from './stages/restore.ts';
import { settleSchedules } from './stages/schedules.ts';
import type { FreezeWindow, RestartWindow } from './statement.ts';
import type { TraceStep } from './trace.ts';

export interface Decision {
  instantMs: number;
  /** What all policies together want, also those that only observe. */
  desired: Desired;
  /** What the policies that may write want; the same as `desired` where no observing policy decides. */
  enforced: Desired;
  /** The step that last shaped each group of {@link desired}. */
  deciders: Partial<Record<FieldGroup, TraceStep>>;
  /** The step that last shaped each group of {@link enforced}. */
  enforcedDeciders: Partial<Record<FieldGroup, TraceStep>>;
  /** True if at least one policy selects the compute. */
  matched: boolean;
  /** Connections are so scarce that a raise does not wait for a good moment. */
  urgent: boolean;
  /** Freezes of policies that are in force. */
  freezes: readonly FreezeWindow[];
  /** Holds that are in force, newest first. */
  holds: readonly Hold[];
  /** Hard limits that may write: what a person sets beyond them does not stay. */
  hardLimits: readonly LimitsPolicy[];
  /** A restart may be made now, by the policy of the highest priority that says so; one that only observes comes last. */
  restart: RestartWindow | undefined;
  trace: TraceStep[];
}

export interface DecideInput {
  policies: CompiledPolicies;
  compute: Compute;
  /** What the compute had when ebb first saw it; undefined before that. */
  baseline: ComputeSettings | undefined;
  /** Milliseconds since the epoch. */
  instantMs: number;
  /** Of any compute; those of others don't count. */
  holds?: readonly Hold[] | undefined;
  /** What a person wants back. Absent at other instants than now. */
  restore?: Restore | undefined;
  /** What was counted of the compute's connections. Absent where headroom is not to be judged, as at other instants than now. */
  connections?: ConnectionHistory | undefined;
  /** How many connections a size accepts; the specification's table if absent. */
  profile?: ConnectionProfile | undefined;
}

/** The precedence of the language. Source: docs/policies.md, "Which policy decides". */
const STAGES: readonly Stage[] = [
  settleSchedules,
  clampToLimits,
  ensureHeadroom,
  restoreBaseline,
  applyHolds,
  clampToHardLimits,
  obeyPlatform,
  reportUnmet,
];

/**
 * What a compute should have at an instant, and why. Pure: the same input gives the same decision, in the daemon, in a
 * plan and in a forecast.
 */
export function decide(input: DecideInput): Decision {
  const { compute, instantMs, profile = CONNECTION_PROFILES.seed } = input;
  const heard = input.policies.heardBy(compute, instantMs);
  const holds = holdsAt(input.holds ?? [], compute, instantMs);
  const matched = holds.length > 0 || heard.matched;
  const { baseline, restore, connections } = input;
  const about = { compute, baseline, instantMs, holds, restore, connections, profile };
  const all = settle({ ...about, heard: heard.all });
  const enforcing = heard.enforced === heard.all ? all : settle({ ...about, heard: heard.enforced });
  return {
    instantMs,
    desired: { size: all.size, suspendTimeoutSeconds: all.suspendTimeoutSeconds },
    enforced: { size: enforcing.size, suspendTimeoutSeconds: enforcing.suspendTimeoutSeconds },
    deciders: all.deciders,
    enforcedDeciders: enforcing.deciders,
    matched,
    urgent: enforcing.urgent,
    freezes: heard.enforced.freezes,
    holds,
    hardLimits: heard.hardLimits,
    restart: heard.restart,
    trace: matched || input.restore ? all.trace : [{ group: 'size', code: 'unmatched' }],
  };
}

function settle(input: StageInput) {
  const draft = emptyDraft();
  for (const stage of STAGES) stage(draft, input);
  return draft;
}
