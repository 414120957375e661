import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import type { ConnectionProfile } from '../../domain/connections/connection-profile.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { Policy, PolicySet } from '../../domain/policy/policy.ts';
import { byPlace } from '../parse.ts';
import type { PolicyProblem } from '../problem.ts';
import type { WrittenPolicy } from '../reader.ts';
import { actBeforeMinAge } from './act-before-min-age.ts';
import { type Budget, createBudget, LINT_STEPS } from './budget.ts';
import { probeKeepsAwake, queryWithoutCompute } from './connection-sources.ts';
import { contradiction } from './contradiction.ts';
import { costlyWindow } from './costly-window.ts';
import { criticalBelowTarget } from './critical-below-target.ts';
import { disjointLimits } from './disjoint-limits.ts';
import { fixedOffsetZone } from './fixed-offset-zone.ts';
import { freezeKeepsAwake } from './freeze-keeps-awake.ts';
import { headroomTooSmall, minimumLimitsConnections, spanTooWide } from './headroom-size.ts';
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
import { timeoutWithoutEffect } from './timeout-without-effect.ts';
import { twoTrials } from './two-trials.ts';
import { createWeekSpans } from './week-spans.ts';

/** The horizon of lint: two years, in milliseconds. */
const HORIZON_MS = 2 * 366 * 86_400_000;

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
  restartRate,
  matchesNothing,
  planRefuses,
  twoTrials,
];

/** A finding of lint about one policy. An error fails `ebb validate`; a daemon starts all the same. */
export interface Finding extends Omit<PolicyProblem, 'code'> {
  code: LintCode;
  severity: 'error' | 'warning';
  policy: string;
}

export interface LintInput {
  /** A whole set, in the order of the language. */
  policies: readonly Policy[];
  /** The places of policies; without them findings name only the file. */
  written?: readonly WrittenPolicy[];
  /** The two years from this instant on, milliseconds since the epoch, are looked at. */
  nowMs: number;
  /** Every compute that there is. Without it lint goes by the selectors alone. */
  fleet?: readonly Compute[];
  /** The plans of accounts, as far as known. */
  plans?: ReadonlyMap<string, AccountPlan>;
  /** The connections that a size gives, by account, as far as the settings are known. */
  profiles?: ReadonlyMap<string, ConnectionProfile>;
  /** From the settings, as far as known. */
  disruption?: PartialDisruption | undefined;
  /** Sources of connection counts, by name. */
  sources?: PolicySet['sources'];
  /** The step limit, see {@link LINT_STEPS}. */
  steps?: number;
}

/**
 * Finds foreseeable problems of a set, in the order of their places. Pure; its work is bounded, and where the bound is reached a finding
 * says so.
 */
export function lintPolicySet(input: LintInput): Finding[] {
  const budget = createBudget(input.steps ?? LINT_STEPS);
  const context = contextOf(input, budget);
  const remarks = RULES.flatMap((rule) => [...rule(context)]);
  const [first] = input.policies;
  if (budget.isExhausted() && first) remarks.push(notCompared(first));
  return remarks.map((remark) => toFinding(remark, context)).sort(byPlace);
}

function contextOf(input: LintInput, budget: Budget): LintContext {
  const { policies, written = [], nowMs, fleet } = input;
  const places = new Map(written.map((policy) => [policy.name, policy]));
  const period = { nowMs, endMs: nowMs + HORIZON_MS };
  return {
    ...period,
    policies,
    schedules: policiesOfKind(policies, 'schedule'),
    overlap: fleet ? overlapInFleet(fleet, policies) : overlapOfSelectors(policies, budget),
    openings: createOpeningsCache(period, budget),
    weekSpans: createWeekSpans(period),
    plans: input.plans ?? new Map(),
    profiles: input.profiles ?? new Map(),
    disruption: input.disruption,
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
  const always = LINTS[code] === 'error' ? 'error' : 'warning';
  return {
    ...(place ?? { file: policy.file, message }),
    code,
    severity: severity ?? always,
    policy: policy.name,
  };
}
