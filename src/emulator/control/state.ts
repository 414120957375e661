import type { Clients } from '../platform.ts';
import { countConnections } from '../world/connections.ts';
import type { Compute, WorldState } from '../world/entities.ts';
import { causesAt, QUARTER_MS, quartersOf, usageAt } from '../world/usage.ts';

const MS_PER_SECOND = 1000;

function computeState(compute: Compute, nowMs: number, { urlOf, refusedOf }: Clients) {
  const usage = usageAt(compute, nowMs);
  return {
    project_id: compute.projectId,
    compute_id: compute.id,
    state: compute.state,
    postgres_url: urlOf(compute.id),
    pending_state: compute.pendingState,
    min_cu: compute.minCu,
    max_cu: compute.maxCu,
    suspend_timeout_seconds: compute.suspendTimeoutSeconds,
    connections: countConnections(compute.connected),
    waiting: countConnections(compute.waiting),
    connections_dropped: usage.connectionsDropped,
    connections_refused: refusedOf(compute.id),
    restarts: usage.restarts,
    active_seconds: usage.activeMs / MS_PER_SECOND,
    awake_seconds_by_cause: Object.fromEntries(
      [...causesAt(compute, nowMs)].map(([cause, ms]) => [cause, ms / MS_PER_SECOND]),
    ),
    cu_seconds: usage.cuMs / MS_PER_SECOND,
    cu_seconds_low: usage.cuMsLow / MS_PER_SECOND,
    cu_seconds_high: usage.cuMsHigh / MS_PER_SECOND,
  };
}

const SUMMED = [
  'connections',
  'connections_dropped',
  'restarts',
  'active_seconds',
  'cu_seconds',
  'cu_seconds_low',
  'cu_seconds_high',
] as const;

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}

/** The state of the world, with sums since its start, the simulated history included. */
export function reportState(world: WorldState, clients: Clients) {
  const computes = [...world.computes.values()].map((compute) => computeState(compute, world.nowMs, clients));
  return {
    now: instant(world.nowMs),
    projects: world.projects.size,
    open_operations: sum([...world.projects.values()], ({ openOperations }) => openOperations),
    computes,
    totals: Object.fromEntries(SUMMED.map((field) => [field, sum(computes, (compute) => compute[field])])),
  };
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

/**
 * The real usage by branch and quarter of an hour, including deleted branches, and when each compute was awake. Quarters
 * without usage are left out.
 */
export function reportUsage(world: WorldState) {
  return {
    now: instant(world.nowMs),
    branches: [...world.ledgers.values()].flatMap((ledger) =>
      [...ledger.branches].map(([branchId, { deletedAtMs = ledger.deletedAtMs }]) => ({
        project_id: ledger.projectId,
        branch_id: branchId,
        deleted_at: deletedAtMs === undefined ? undefined : instant(deletedAtMs),
        quarters: [...quartersOf(world, ledger, branchId)]
          .sort(([left], [right]) => left - right)
          .map(([quarter, { cuMs, activeMs }]) => ({
            start: instant(quarter * QUARTER_MS),
            cu_seconds: cuMs / MS_PER_SECOND,
            awake_seconds: activeMs / MS_PER_SECOND,
          })),
      })),
    ),
    computes: [...world.computes.values()].map(({ id, projectId, branchId, awake }) => ({
      project_id: projectId,
      branch_id: branchId,
      compute_id: id,
      awake: awake.map(({ fromMs, toMs }) => ({
        from: instant(fromMs),
        to: toMs === undefined ? undefined : instant(toMs),
      })),
    })),
  };
}
