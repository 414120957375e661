import { type Compute, type ComputeSettings, settingsOf } from '../compute/compute.ts';
import type { ConnectionProfile } from '../connections/connection-profile.ts';
import type { ConnectionHistory } from '../connections/connections.ts';
import { withoutDecided } from '../overrides/restore.ts';
import type { Change } from '../plan/change.ts';
import { atMostAllowed, atOnceAllowed, countsFor } from '../plan/gates/disruption.ts';
import { hasOperationRunning } from '../plan/gates/earlier-writes.ts';
import { type Action, inOrderOfWriting, type Plan } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { AtMost } from '../policy/disruption.ts';
import { type ComputeRecord, firstRecord } from '../records/compute-record.ts';
import { confirmWrite } from '../records/failures.ts';
import { ascending } from '../sorted.ts';
import { type EvaluatedCompute, evaluate, type Situation } from './evaluate.ts';
import { updatedRecord } from './updated-record.ts';

/** All that is known of a fleet at an instant. Maps are by compute id, but for profiles, which are by account. */
export interface FleetSituation
  extends Pick<Situation, 'policies' | 'holds' | 'freezes' | 'mode' | 'disruption' | 'manualChanges'> {
  computes: readonly Compute[];
  records: ReadonlyMap<string, ComputeRecord>;
  /** Settings of computes without a record before ebb's first change; their present ones where unknown. */
  baselines?: ReadonlyMap<string, ComputeSettings>;
  /** The instant that is planned for, milliseconds since the epoch. */
  nowMs: number;
  /** When ebb discovers the computes without a record: now if absent. */
  metAtMs?: number;
  /** Absent where headroom is not to be plannedById; a compute that is not in it was not counted. */
  connections?: ReadonlyMap<string, ConnectionHistory>;
  profiles: ReadonlyMap<string, ConnectionProfile>;
  /** Hashes a text. */
  digest(text: string): string;
}

export interface FleetPlan {
  atMs: number;
  /** The same for plans that do the same to the same computes under the same policies. */
  hash: string;
  /** Every compute, by project and id. */
  computes: readonly EvaluatedCompute[];
}

/**
 * Plans for every compute like a daemon that reconciles all of them at this instant. Restarts are counted in the order of writing: by
 * priority, then raises first. Pure.
 */
export function planFleet(fleet: FleetSituation): FleetPlan {
  const known = fleet.computes.toSorted(byPlace).map((compute) => ({ compute, record: recordAt(fleet, compute) }));
  const busy = busyComputes(known);
  const count = countRestarts(fleet.policies, fleet.nowMs, known);
  const plannedById = new Map<string, EvaluatedCompute>();
  for (const one of known) plannedById.set(one.compute.computeId, planOne(fleet, one, busy, undefined));
  for (const planned of inOrderOfWriting([...plannedById.values()])) {
    const { computeId } = planned.compute;
    const disconnecting = planned.plan.actions.find(({ disconnects }) => disconnects);
    if (!disconnecting) continue;
    const again = planOne(fleet, planned, busy, count);
    plannedById.set(computeId, again);
    if (again.plan.verdict === 'act') for (const action of again.plan.actions) count.add(computeId, action);
  }
  const computes = [...plannedById.values()];
  return {
    atMs: fleet.nowMs,
    hash: fleet.digest(planHash(fleet.policies.set.hash, computes.map(hashedActions))),
    computes,
  };
}

function planOne(
  fleet: FleetSituation,
  { compute, record }: CountedCompute,
  busy: ReadonlyMap<string, ReadonlySet<string>>,
  count: RestartCount | undefined,
): EvaluatedCompute {
  const { policies, mode, nowMs, holds, freezes, disruption, manualChanges } = fleet;
  const { projectId, computeId, account } = compute;
  const others = [...(busy.get(projectId) ?? [])].filter((id) => id !== computeId);
  const profile = fleet.profiles.get(account);
  const connections = fleet.connections && (fleet.connections.get(computeId) ?? new Map());
  const isFull = (change: Change, share: number) => count?.isFull(computeId, change.policy, share) === true;
  const evaluation = evaluate({
    ...{ policies, compute, record, mode, nowMs, disruption, manualChanges },
    projectBusy: others.length > 0,
    isAtOnceFull: isFull,
    isAtMostFull: (change, limit) => count?.isAtMostFull(computeId, change.policy, limit) === true,
    ...(holds && { holds }),
    ...(freezes && { freezes }),
    ...(connections && { connections }),
    ...(profile && { profile }),
  });
  return { compute, record: withoutDecided(record, compute, evaluation.decision), ...evaluation };
}

/** The stored record, with its wishes as of now; or the record that the first reconcile would store. */
function recordAt(fleet: FleetSituation, compute: Compute): ComputeRecord {
  const { records, baselines, nowMs, policies, manualChanges, holds = [] } = fleet;
  const metAtMs = Math.min(fleet.metAtMs ?? nowMs, nowMs);
  const stored = records.get(compute.computeId);
  if (!stored) {
    const baseline = baselines?.get(compute.computeId) ?? settingsOf(compute);
    return { ...firstRecord(compute, metAtMs), baseline, enforcedSinceMs: metAtMs };
  }
  const about = { policies, nowMs, holds, enforcedSinceMs: metAtMs, ...(manualChanges && { manualChanges }) };
  return updatedRecord(confirmWrite(stored, compute, nowMs), compute, about);
}

/** The computes with a running operation, by project: the control API then refuses changes to the others. */
function busyComputes(known: readonly CountedCompute[]): Map<string, Set<string>> {
  const busy = new Map<string, Set<string>>();
  for (const { compute, record } of known) {
    if (!hasOperationRunning(compute, record)) continue;
    const inProject = busy.get(compute.projectId) ?? new Set();
    busy.set(compute.projectId, inProject.add(compute.computeId));
  }
  return busy;
}

function byPlace(a: Compute, b: Compute): number {
  return ascending(a.projectId, b.projectId) || ascending(a.computeId, b.computeId);
}

interface CountedCompute {
  compute: Compute;
  record: ComputeRecord;
}

/** The number of a policy's computes that are being restarted. */
interface RestartCount {
  /** True if the policy may not disturb this compute besides those that it disturbs already. */
  isFull(computeId: string, policy: string, share: number): boolean;
  /** True if the policy has disturbed as many as it may within the time of the limit, without this one. */
  isAtMostFull(computeId: string, policy: string, limit: AtMost): boolean;
  /** Counts an action; a change that disconnects nobody takes no slot. */
  add(computeId: string, action: Action): void;
}

/** Begins with the computes on which operations of ebb are under way. */
export function countRestarts(
  policies: CompiledPolicies,
  nowMs: number,
  known: readonly CountedCompute[],
): RestartCount {
  const indexOf = new Map(policies.set.policies.map(({ name }, index) => [name, index]));
  const restarting = new Map<string, Set<string>>();
  const selected = new Map<string, number>();
  const place = (policy: string, computeId: string) => {
    restarting.set(policy, (restarting.get(policy) ?? new Set()).add(computeId));
  };
  for (const { compute, record } of known) {
    for (const { policy } of record.openOperations) if (policy !== undefined) place(policy, compute.computeId);
  }
  const selectedBy = (name: string): number | undefined => {
    const index = indexOf.get(name);
    if (index === undefined) return undefined;
    const many = selected.get(name) ?? known.filter(({ compute }) => policies.selects(index, compute, nowMs)).length;
    selected.set(name, many);
    return many;
  };
  const disturbedSince = (name: string, sinceMs: number): string[] => {
    const index = indexOf.get(name) ?? -1;
    return known.flatMap(({ compute, record: { lastDisruption: last } }) =>
      last && last.atMs > sinceMs && countsFor(policies, index, { compute, last }) ? [compute.computeId] : [],
    );
  };
  return {
    isFull(computeId, policy, share) {
      const held = restarting.get(policy);
      const many = selectedBy(policy);
      // A hold is no policy: one person's word on one compute is never too many.
      if (held === undefined || many === undefined || held.has(computeId)) return false;
      return held.size >= atOnceAllowed(many, share);
    },
    isAtMostFull(computeId, policy, limit) {
      const many = selectedBy(policy);
      const ids = new Set([...(restarting.get(policy) ?? []), ...disturbedSince(policy, nowMs - limit.windowMs)]);
      return many !== undefined && !ids.has(computeId) && ids.size >= atMostAllowed(many, limit);
    },
    add(computeId, { policy, disconnects }) {
      if (disconnects) place(policy, computeId);
    },
  };
}

/**
 * The text that a plan's hash is made of: the policies and, for each action, the compute with its present and wanted sizes and timeout,
 * now or later, and if it disconnects. The time of planning does not matter.
 */
export function planHash(policySetHash: string, actions: readonly (readonly string[])[]): string {
  return `[${[JSON.stringify(policySetHash), ...actions.flat()].join()}]`;
}

/** The part of a compute's actions that {@link planHash} hashes. */
export function hashedActions({ compute, plan }: { compute: Compute; plan: Plan }): string[] {
  return plan.actions.map(({ kind, fields, disconnects }) =>
    JSON.stringify([
      ...[compute.computeId, plan.verdict, kind, disconnects],
      ...[compute.minCu, compute.maxCu, compute.suspendTimeoutSeconds],
      ...[fields.minCu ?? null, fields.maxCu ?? null, fields.suspendTimeoutSeconds ?? null],
    ]),
  );
}
