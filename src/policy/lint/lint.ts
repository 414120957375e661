import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { byPlace } from '../parse.ts';
import type { PolicyProblem } from '../problem.ts';
import type { WrittenPolicy } from '../reader.ts';
import { probeKeepsAwake, queryWithoutCompute } from './connection-sources.ts';
import { contradiction } from './contradiction.ts';
import { costlyWindow } from './costly-window.ts';
import { disjointLimits } from './disjoint-limits.ts';
import { actBeforeMinAge, deadlineBeforeNotice } from './disruption.ts';
import { fixedOffsetZone } from './fixed-offset-zone.ts';
import { freezeKeepsAwake } from './freeze-keeps-awake.ts';
import { criticalBelowTarget, headroomTooSmall, minimumLimitsConnections, spanTooWide } from './headroom.ts';
import { idleCannotOccur } from './idle-cannot-occur.ts';
import { matchesNothing } from './matches-nothing.ts';
import { neverOpens } from './never-opens.ts';
import { noValue } from './no-value.ts';
import { createOpeningsCache } from './openings.ts';
import { overlapInFleet, overlapOfSelectors } from './overlap.ts';
import { overlappingWindows } from './overlapping-windows.ts';
import { planRefuses } from './plan-refuses.ts';
import { restartRate } from './restart-rate.ts';
import { LINTS, type LintCode, type LintContext, type LintRule, type Remark } from './rule.ts';
import { skippedLocalTime } from './skipped-local-time.ts';
import { createStepLimit, LINT_STEPS, type StepLimit } from './step-limit.ts';
import { timeoutWithoutEffect } from './timeout-without-effect.ts';
import { twoTrials } from './two-trials.ts';
import { createWeekSpans } from './week-spans.ts';

/** Two years, as the messages of the lints say. */
const HORIZON_MS = 2 * 366 * DAY_MS;

const RULES: readonly LintRule[] = [
  actBeforeMinAge,
  neverOpens,
  costlyWindow,
  skippedLocalTime,
  contradiction,
  noValue,
  timeoutWithoutEffect,
  idleCannotOccur,
  probeKeepsAwake,
  headroomTooSmall,
  spanTooWide,
  minimumLimitsConnections,
  disjointLimits,
  overlappingWindows,
  fixedOffsetZone,
  criticalBelowTarget,
  queryWithoutCompute,
  freezeKeepsAwake,
  deadlineBeforeNotice,
  restartRate,
  matchesNothing,
  planRefuses,
  twoTrials,
];

/** A finding about one policy. An error fails `ebb validate`, but does not keep a daemon from starting. */
export interface Finding extends Omit<PolicyProblem, 'code'> {
  code: LintCode;
  severity: 'error' | 'warning';
  policy: string;
}

export interface LintInput {
  /** Policies of a set, in its order. */
  policies: readonly Policy[];
  /** False if files with problems have further policies. Default: true. */
  isWhole?: boolean;
  /** The places of policies; without them, findings name only the file. */
  written?: readonly WrittenPolicy[];
  /** The start of the two years that are checked, milliseconds since the epoch. */
  nowMs: number;
  /** All computes. Without them, lint compares selectors. */
  fleet?: readonly Compute[];
  /** By account. */
  plans?: ReadonlyMap<string, AccountPlan>;
  /** By account. */
  profiles?: ReadonlyMap<string, ConnectionProfile>;
  /** `disruption` of the settings. */
  disruption?: PartialDisruption | undefined;
  /** `notify_before` of the settings, in milliseconds. */
  notifyBeforeMs?: number | undefined;
  sources?: PolicySet['sources'];
  /** Default: {@link LINT_STEPS}. */
  steps?: number;
}

/** Finds foreseeable problems of a set, in the order of their places. The work is bounded; a finding says if the limit was reached. */
export function lintPolicySet(input: LintInput): Finding[] {
  const limit = createStepLimit(input.steps ?? LINT_STEPS);
  const context = contextOf(input, limit);
  const remarks = RULES.flatMap((rule) => [...rule(context)]);
  const [first] = input.policies;
  if (limit.isExhausted() && first) remarks.push(notCompared(first));
  return remarks.map((remark) => toFinding(remark, context)).sort(byPlace);
}

function contextOf(input: LintInput, limit: StepLimit): LintContext {
  const { policies, written = [], nowMs, fleet } = input;
  const places = new Map(written.map((policy) => [policy.name, policy]));
  const period = { nowMs, endMs: nowMs + HORIZON_MS };
  return {
    ...period,
    policies,
    isWhole: input.isWhole ?? true,
    schedules: policiesOfKind(policies, 'schedule'),
    overlap: fleet ? overlapInFleet(fleet, policies) : overlapOfSelectors(policies, limit),
    openings: createOpeningsCache(period, limit),
    weekSpans: createWeekSpans(period),
    plans: input.plans ?? new Map(),
    profiles: input.profiles ?? new Map(),
    disruption: input.disruption,
    notifyBeforeMs: input.notifyBeforeMs,
    sources: input.sources ?? new Map(),
    written: ({ name }) => places.get(name),
  };
}

function notCompared(policy: Policy): Remark {
  const message = 'the set is too large or its times too dense to compare all of it for two years; some was left out';
  return { code: 'not-compared', policy, at: ['name'], message };
}

function toFinding({ code, policy, at, fromTop = false, severity, message }: Remark, context: LintContext): Finding {
  const written = context.written(policy);
  const place = written?.problemAt(fromTop ? at : [...written.at, ...at], 'value', message);
  const usualSeverity = LINTS[code] === 'error' ? 'error' : 'warning';
  return {
    ...(place ?? { file: policy.file, message }),
    code,
    severity: severity ?? usualSeverity,
    policy: policy.name,
  };
}
