import type { VerifiedFacts } from '../compute/account-facts.ts';
import { type Compute, type ComputeSettings, settingsOf } from '../compute/compute.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import type { ConnectionHistory } from '../connections/connections.ts';
import { getOrAdd } from '../grouping.ts';
import { type GuardStates, verdictAt } from '../guards/state.ts';
import { withoutDecided } from '../overrides/restore.ts';
import { atMostAllowed, atOnceAllowed, countsTowardsLimit } from '../plan/gates/disruption.ts';
import { hasOperationRunning } from '../plan/gates/earlier-writes.ts';
import { type Action, inWriteOrder, type Plan } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { AtMost } from '../policy/disruption.ts';
import { digest } from '../policy/policy-set.ts';
import { type ComputeRecord, firstRecord } from '../records/compute-record.ts';
import { confirmWrite } from '../records/failures.ts';
import { ascending } from '../sorted.ts';
import { type EvaluatedCompute, evaluate, type Situation } from './evaluate.ts';
import { updatedRecord } from './updated-record.ts';

/** The input of a fleet's plan. Maps are keyed by compute id; `profiles` and `verified` by account. */
export interface FleetSituation
  extends Pick<Situation, 'policies' | 'holds' | 'freezes' | 'mode' | 'disruption' | 'manualChanges'> {
  computes: readonly Compute[];
  records: ReadonlyMap<string, ComputeRecord>;
  /** Baselines of computes without a record; absent: their present settings. */
  baselines?: ReadonlyMap<string, ComputeSettings>;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** When ebb discovers computes without a record; absent: now. */
  discoveredAtMs?: number;
  /** Absent where headroom is not planned; computes missing in it were not counted. */
  connections?: ReadonlyMap<string, ConnectionHistory>;
  profiles: ReadonlyMap<string, ConnectionProfile>;
  verified?: VerifiedFacts;
  /** The last verdicts of guards; absent: they have not been asked. */
  guardStates?: GuardStates;
}

export interface FleetPlan {
  atMs: number;
  /** Equal for plans with the same actions on the same computes under the same policies. */
  hash: string;
  /** Every compute, sorted by project and id. */
  computes: readonly EvaluatedCompute[];
}

/**
 * Plans for every compute as if a daemon reconciled all of them at this instant. Restarts are counted in write order: by
 * priority, then raises first. Pure.
 */
export function planFleet(fleet: FleetSituation): FleetPlan {
  const recorded = fleet.computes
    .toSorted((a, b) => ascending(a.projectId, b.projectId) || ascending(a.computeId, b.computeId))
    .map((compute) => ({ compute, record: recordAt(fleet, compute) }));
  const busy = busyComputes(recorded);
  const count = countRestarts(fleet.policies, fleet.nowMs, recorded);
  const plannedById = new Map<string, EvaluatedCompute>();
  for (const one of recorded) plannedById.set(one.compute.computeId, planCompute(fleet, one, busy, undefined));
  for (const planned of inWriteOrder([...plannedById.values()])) {
    const { computeId } = planned.compute;
    if (!planned.plan.actions.some(({ disconnects }) => disconnects)) continue;
    const replanned = planCompute(fleet, planned, busy, count);
    plannedById.set(computeId, replanned);
    if (replanned.plan.verdict === 'act') for (const action of replanned.plan.actions) count.add(computeId, action);
  }
  const computes = [...plannedById.values()];
  return {
    atMs: fleet.nowMs,
    hash: digest(textToHash(fleet.policies.set.hash, computes.map(hashedActions))),
    computes,
  };
}

function planCompute(
  fleet: FleetSituation,
  { compute, record }: RecordedCompute,
  busy: ReadonlyMap<string, ReadonlySet<string>>,
  count: RestartCount | undefined,
): EvaluatedCompute {
  const { policies, mode, nowMs, holds, freezes, disruption, manualChanges } = fleet;
  const { projectId, computeId, account } = compute;
  const others = [...(busy.get(projectId) ?? [])].filter((id) => id !== computeId);
  const profile = fleet.profiles.get(account);
  const connections = fleet.connections && (fleet.connections.get(computeId) ?? new Map());
  const evaluation = evaluate({
    policies,
    compute,
    record,
    mode,
    nowMs,
    disruption,
    manualChanges,
    verified: fleet.verified?.get(account),
    projectBusy: others.length > 0,
    isAtOnceReached: (change, share) => count?.isAtOnceReached(computeId, change.policy, share) === true,
    isAtMostReached: (change, limit) => count?.isAtMostReached(computeId, change.policy, limit) === true,
    ...(holds && { holds }),
    ...(freezes && { freezes }),
    ...(connections && { connections }),
    ...(profile && { profile }),
    verdictOf: (guard) => verdictAt(fleet.guardStates?.get(computeId), guard, nowMs),
  });
  return { compute, record: withoutDecided(record, compute, evaluation.decision), ...evaluation };
}

/** The stored record, updated to now; or the record that the first reconcile would store. */
function recordAt(fleet: FleetSituation, compute: Compute): ComputeRecord {
  const { records, baselines, nowMs, policies, manualChanges, holds = [] } = fleet;
  const discoveredAtMs = Math.min(fleet.discoveredAtMs ?? nowMs, nowMs);
  const stored = records.get(compute.computeId);
  if (!stored) {
    const baseline = baselines?.get(compute.computeId) ?? settingsOf(compute);
    return { ...firstRecord(compute, discoveredAtMs), baseline, enforcedSinceMs: discoveredAtMs };
  }
  const situation = { policies, nowMs, holds, manualChanges, enforcedSinceMs: discoveredAtMs };
  return updatedRecord(confirmWrite(stored, compute, nowMs), compute, situation);
}

/** The computes with a running operation, by project. Meanwhile the control API refuses changes to others of the project. */
function busyComputes(computes: readonly RecordedCompute[]): Map<string, Set<string>> {
  const busy = new Map<string, Set<string>>();
  for (const { compute, record } of computes) {
    if (hasOperationRunning(compute, record))
      getOrAdd(busy, compute.projectId, () => new Set<string>()).add(compute.computeId);
  }
  return busy;
}

interface RecordedCompute {
  compute: Compute;
  record: ComputeRecord;
}

type RestartCount = ReturnType<typeof countRestarts>;

/** Counts the computes that each policy is restarting, starting with those on which ebb's operations are running. */
export function countRestarts(policies: CompiledPolicies, nowMs: number, computes: readonly RecordedCompute[]) {
  const indexOf = new Map(policies.set.policies.map(({ name }, index) => [name, index]));
  const restarting = new Map<string, Set<string>>();
  const selectedCounts = new Map<string, number>();
  const markRestarting = (policy: string, computeId: string) =>
    getOrAdd(restarting, policy, () => new Set<string>()).add(computeId);
  for (const { compute, record } of computes) {
    for (const { policy } of record.openOperations) if (policy !== undefined) markRestarting(policy, compute.computeId);
  }
  const countSelected = (name: string): number | undefined => {
    const index = indexOf.get(name);
    if (index === undefined) return undefined;
    const selectedComputes = () => computes.filter(({ compute }) => policies.selects(index, compute, nowMs));
    return getOrAdd(selectedCounts, name, () => selectedComputes().length);
  };
  const disturbedSince = (name: string, sinceMs: number): string[] => {
    const index = indexOf.get(name) ?? -1;
    return computes.flatMap(({ compute, record: { lastDisruption: last } }) =>
      last && last.atMs > sinceMs && countsTowardsLimit(policies, index, { compute, last }) ? [compute.computeId] : [],
    );
  };
  return {
    /** True if the policy already restarts as many computes at once as it may, not counting this one. */
    isAtOnceReached(computeId: string, policy: string, share: number): boolean {
      const restartingIds = restarting.get(policy);
      const selectedCount = countSelected(policy);
      // A hold is no policy: it concerns one compute, so no limit applies.
      if (restartingIds === undefined || selectedCount === undefined || restartingIds.has(computeId)) return false;
      return restartingIds.size >= atOnceAllowed(selectedCount, share);
    },
    /** True if the policy has restarted as many computes as it may within the limit's window, not counting this one. */
    isAtMostReached(computeId: string, policy: string, limit: AtMost): boolean {
      const selectedCount = countSelected(policy);
      const ids = new Set([...(restarting.get(policy) ?? []), ...disturbedSince(policy, nowMs - limit.windowMs)]);
      return selectedCount !== undefined && !ids.has(computeId) && ids.size >= atMostAllowed(selectedCount, limit);
    },
    add(computeId: string, { policy, disconnects }: Action): void {
      if (disconnects) markRestarting(policy, computeId);
    },
  };
}

/** The text to hash for a plan, from {@link hashedActions}. The time of planning is left out. */
export function textToHash(policySetHash: string, actions: readonly (readonly string[])[]): string {
  return `[${[JSON.stringify(policySetHash), ...actions.flat()].join()}]`;
}

/** The texts of a compute's actions: present and wanted settings, the verdict, and whether clients are disconnected. */
export function hashedActions({ compute, plan }: { compute: Compute; plan: Plan }): string[] {
  return plan.actions.map(({ kind, fields, disconnects }) =>
    JSON.stringify([
      compute.computeId,
      plan.verdict,
      kind,
      disconnects,
      compute.minCu,
      compute.maxCu,
      compute.suspendTimeoutSeconds,
      fields.minCu ?? null,
      fields.maxCu ?? null,
      fields.suspendTimeoutSeconds ?? null,
    ]),
  );
}
