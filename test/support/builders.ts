/** Small, complete domain values for tests; each test names only what it is about. */

import { type CompiledPolicies, compilePolicies } from '../../src/domain/compiled-policies.ts';
import type { Compute } from '../../src/domain/compute.ts';
import type { ComputeRecord } from '../../src/domain/compute-record.ts';
import { judge, type Situation } from '../../src/domain/judge.ts';
import type { Plan } from '../../src/domain/plan.ts';
import type { Policy, SchedulePolicy } from '../../src/domain/policy.ts';
import type { WeeklyWindow } from '../../src/domain/time-spec.ts';

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
    select: { projects: ['*'], minAgeMs: 0 },
    priority: 0,
    windows: [{ at: [aWindow()], size: { minCu: 1, maxCu: 4 } }],
    otherwise: { size: { minCu: 0.25, maxCu: 1 }, suspendTimeoutSeconds: 300 },
    ...fields,
  };
}

export function compiled(...policies: Policy[]): CompiledPolicies {
  return compilePolicies({ policies, hash: 'test' });
}

/** Plans as the daemon does. */
export function planFor(situation: Partial<Situation> & Pick<Situation, 'policies' | 'compute' | 'nowMs'>): Plan {
  return judge({ record: undefined, mode: 'enforce', projectBusy: false, ...situation }).plan;
}
