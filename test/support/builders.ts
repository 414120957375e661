/** Small, complete domain values for tests; each test names only what it is about. */

import { randomUUID } from 'node:crypto';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import type { CurrentRules } from '../../src/app/rules.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { ConnectionHistory, ConnectionSample } from '../../src/domain/connections/connections.ts';
import { evaluate, type Situation } from '../../src/domain/evaluate/evaluate.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import { gatesOf, type Plan, reasonsOf } from '../../src/domain/plan/plan.ts';
import { type CompiledPolicies, compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import type { BudgetPolicy } from '../../src/domain/policy/kinds/budget.ts';
import type { FreezePolicy } from '../../src/domain/policy/kinds/freeze.ts';
import type { GuardPolicy } from '../../src/domain/policy/kinds/guard.ts';
import type { HeadroomPolicy } from '../../src/domain/policy/kinds/headroom.ts';
import type { LimitsPolicy } from '../../src/domain/policy/kinds/limits.ts';
import type { RestartPolicy } from '../../src/domain/policy/kinds/restart.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { TrialPolicy } from '../../src/domain/policy/kinds/trial.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { StepSpan } from '../../src/domain/spend/terms.ts';
import type { WeeklyWindow } from '../../src/domain/time/time-spec.ts';
import { aSelector } from './selectors.ts';

export const at = (iso: string): number => Date.parse(iso);

export function aCompute(fields: Partial<Compute> = {}): Compute {
  return {
    account: 'default',
    projectId: 'p-one',
    projectName: 'web-shop',
    computeId: 'ep-one',
    branchId: 'br-one',
    type: 'read_write',
    regionId: 'aws-eu-central-1',
    minCu: 0.25,
    maxCu: 2,
    suspendTimeoutSeconds: 300,
    state: 'active',
    disabled: false,
    createdAtMs: at('2025-01-01T00:00:00Z'),
    ...fields,
  };
}

export function aRecord(fields: Partial<ComputeRecord> = {}): ComputeRecord {
  return {
    baseline: { minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300 },
    firstSeenAtMs: 0,
    enforcedSinceMs: 0,
    lastApplied: { minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300 },
    lastDecidedAtMs: 0,
    openOperations: [],
    ...fields,
  };
}

/** Mon–Fri 08:00–18:00 UTC unless said otherwise. */
export function aWindow(fields: Partial<WeeklyWindow> = {}): WeeklyWindow {
  return {
    kind: 'weekly',
    days: [1, 2, 3, 4, 5],
    startMinute: 480,
    endMinute: 1080,
    endDayOffset: 0,
    zone: 'UTC',
    ...fields,
  };
}

export function aSchedule(fields: Partial<SchedulePolicy> = {}): SchedulePolicy {
  return {
    kind: 'schedule',
    name: 'office-hours',
    file: 'policies/test.yaml',
    mode: 'enforce',
    select: aSelector({ projects: ['*'] }),
    priority: 0,
    windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 4 } }],
    otherwise: { size: { minCu: 0.25, maxCu: 1 }, suspendTimeoutSeconds: 300 },
    ...fields,
  };
}

/** What every policy of another kind than a schedule has unless said otherwise. */
const BASE = {
  file: 'policies/test.yaml',
  mode: 'enforce',
  select: aSelector({ projects: ['*'] }),
  priority: 0,
} as const;

/** 0.25–4 CU unless said otherwise. */
export function aLimits(fields: Partial<LimitsPolicy> = {}): LimitsPolicy {
  return { ...BASE, kind: 'limits', name: 'limits', size: { minCu: 0.25, maxCu: 4 }, hard: false, ...fields };
}

/** 80 % of the connections that source `counts` counts, up to 8 CU, back after 30 minutes. */
export function aHeadroom(fields: Partial<HeadroomPolicy> = {}): HeadroomPolicy {
  return {
    ...BASE,
    kind: 'headroom',
    name: 'headroom',
    connections: 'counts',
    targetShare: 0.8,
    maxCu: 8,
    mayRaiseMin: false,
    scaleDownAfterMs: 30 * 60_000,
    act: 'apply',
    ...fields,
  };
}

/** Always, unless said otherwise. */
export function aFreeze(fields: Partial<FreezePolicy> = {}): FreezePolicy {
  return { ...BASE, kind: 'freeze', name: 'freeze', at: [{ kind: 'always' }], allowRaise: false, ...fields };
}

/** Mon–Fri 08:00–18:00 UTC, once in each opening, unless said otherwise. */
export function aRestart(fields: Partial<RestartPolicy> = {}): RestartPolicy {
  return { ...BASE, kind: 'restart', name: 'restart', at: [aWindow()], ...fields };
}

/** Withdraws `office-hours` from a quarter of the projects, for a week each, 2026-03-02 to 2026-04-27 UTC, unless said otherwise. */
export function aTrial(fields: Partial<TrialPolicy> = {}): TrialPolicy {
  const fromDay = at('2026-03-02T00:00:00Z') / 86_400_000;
  return {
    ...{ ...BASE, kind: 'trial', name: 'proof', of: ['office-hours'], unit: 'project', digest: 'terms' },
    design: { seed: 'a', oneOf: 4, rotateDays: 7, fromDay, periods: 8, zone: 'UTC' },
    ...fields,
  };
}

/** A latency above 0.4 is bad, of the service that is called like the project. */
export function aGuard(fields: Partial<GuardPolicy> = {}): GuardPolicy {
  return {
    ...{ ...BASE, kind: 'guard', name: 'latency', source: 'main', query: 'p95', isAlert: false, noData: 'unknown' },
    ...{ match: { service: '{project_name}' }, badWhen: { side: 'above', limit: 0.4, relative: false } },
    ...{ forMs: 180_000, watchMs: 1_800_000, settleMs: 120_000, remedy: 'notify' },
    ...fields,
  };
}

/** 100 CU-hours; 5m from 90 % projected on, 1 CU besides from 100 % spent on, unless said otherwise. */
export function aBudget(fields: Partial<BudgetPolicy> = {}): BudgetPolicy {
  return {
    ...{ ...BASE, kind: 'budget', name: 'budget', month: { unit: 'cu_hours', amount: 100 } },
    steps: [
      { at: 0.8, of: 'projected', notify: ['team'] },
      { at: 0.9, of: 'projected', notify: [], limits: { suspend_timeout: { low: 0, high: 300 } } },
      {
        ...{ at: 1, of: 'spent', notify: [] },
        limits: { size: { low: 0, high: 1 }, suspend_timeout: { low: 0, high: 300 } },
      },
    ],
    ...{ includeProtected: true, zone: 'UTC' },
    ...fields,
  };
}

/** The last step of {@link aBudget}, in March 2026 from the 20th on, unless said otherwise. */
export function aStepSpan(fields: Partial<StepSpan> = {}): StepSpan {
  const [fromMs, untilMs] = [at('2026-03-20T10:00:00Z'), at('2026-04-01T00:00:00Z')];
  return { policy: 'budget', account: 'default', at: 1, of: 'spent', fromMs, untilMs, ...fields };
}

/** Holds nothing yet; from 1970 to 2100 unless said otherwise. */
export function aHold(fields: Partial<Hold> = {}): Hold {
  return {
    id: 'h1',
    projectId: 'p-one',
    computeId: 'ep-one',
    owner: 'ann',
    reason: 'load test',
    createdAtMs: 0,
    expiresAtMs: at('2100-01-01T00:00:00Z'),
    ...fields,
  };
}

/** Counts of the source that {@link aHeadroom} asks, one for each minute up to an instant, the latest last. */
export function countsUntil(untilMs: number, ...counts: number[]): ConnectionHistory {
  const samples = counts.map(
    (connections, index): ConnectionSample => ({ atMs: untilMs - (counts.length - 1 - index) * 60_000, connections }),
  );
  return new Map([['counts', samples]]);
}

export function compiled(...policies: Policy[]): CompiledPolicies {
  return compilePolicies({ policies, sources: new Map(), hash: 'test' });
}

/** Rules of which only the policies matter. */
/** Nobody owns anything, and no price is known. */
export const NO_COSTS = {
  owners: [],
  coldStartWorthMs: [],
  prices: { free: 0, launch: 0.1, scale: 0.2 },
  plans: new Map(),
};

/** Nobody is told anything. */
export const NO_RECEIVERS = { receivers: [] };

export function currentRules(...policies: Policy[]): CurrentRules {
  const [disruption, profiles, verified] = [{}, new Map(), new Map()];
  const current = { policies: compiled(...policies), disruption, profiles, verified, manualChanges: undefined };
  return { current: { ...current, revision: undefined, costs: NO_COSTS, teams: [], notify: NO_RECEIVERS } };
}

/** A plan with all of its reasons in a row, as people are shown them, and the gates that hold what waits. */
export function told(plan: Plan) {
  return { ...plan, reasons: reasonsOf(plan), heldBy: gatesOf(plan) };
}

/** Plans as the daemon does. */
export function planFor(situation: Partial<Situation> & Pick<Situation, 'policies' | 'compute' | 'nowMs'>) {
  return told(evaluate({ record: undefined, mode: 'enforce', projectBusy: false, ...situation }).plan);
}

/** A clock that agrees with the store's, which was not lost: projects may be decided. */
export const MAY_DECIDE = {
  storeClock: { excessiveOffsetMs: async () => undefined },
  storeWatch: { waitMs: () => 0, lostAtMs: () => undefined },
};

/** Restart slots that nothing limits. */
export const FREE_SLOTS = {
  isAtOnceReached: () => false,
  isAtMostReached: () => false,
  take: async () => ({ giveBack() {} }),
  async release() {},
};

/** Real waits and ids of its own, for an operator. */
export const REAL = { clock: systemClock(), newId: () => randomUUID(), random: Math.random };
