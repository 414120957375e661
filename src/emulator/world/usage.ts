import type { Compute, Project, ProjectLedger, QuarterLedger, Usage, WorldState } from './entities.ts';
import { effectiveTimeoutSeconds } from './suspension.ts';
import { MINUTE_MS } from './units.ts';

/** A quarter of an hour. */
export const QUARTER_MS = 15 * MINUTE_MS;

export function noUsage(nowMs: number): Usage {
  return {
    addedUntilMs: nowMs,
    activeMs: 0,
    cuMs: 0,
    cuMsLow: 0,
    cuMsHigh: 0,
    connectionsDropped: 0,
    restarts: 0,
    causes: new Map(),
  };
}

/** The ledger of a project, created on first use. */
export function projectLedger(world: WorldState, project: Project): ProjectLedger {
  const existing = world.ledgers.get(project.id);
  if (existing !== undefined) return existing;
  const ledger: ProjectLedger = {
    projectId: project.id,
    orgId: project.orgId,
    createdAtMs: project.createdAtMs,
    deletedAtMs: undefined,
    plans: [{ fromMs: project.createdAtMs, plan: project.plan }],
    branches: new Map(),
  };
  world.ledgers.set(project.id, ledger);
  return ledger;
}

export function branchLedger(world: WorldState, project: Project, branchId: string): QuarterLedger {
  const { branches } = projectLedger(world, project);
  const branch = branches.get(branchId) ?? { quarters: new Map(), deletedAtMs: undefined };
  branches.set(branchId, branch);
  return branch.quarters;
}

/** The size chosen by autoscaling, in CU: the demand of the connected clients, within the limits. */
export function sizeOf(compute: Compute): number {
  const needed = compute.connected.reduce((sum, { cu = 0 }) => sum + cu, 0);
  return Math.min(compute.maxCu, Math.max(compute.minCu, needed));
}

/** The reason why an active compute is awake: a key of `Usage.causes`. */
function causeOf(compute: Compute): string {
  const [first, ...others] = compute.connected.filter((group) => group.isBusy).map(({ cause = 'clients' }) => cause);
  if (first !== undefined) return others.length === 0 ? first : [...new Set([first, ...others])].sort().join('+');
  return effectiveTimeoutSeconds(compute) === undefined ? 'never_suspends' : 'timeout';
}

/** Active time since usage was last added up, which is not in any sum yet. */
function pendingMs(compute: Compute, nowMs: number): number {
  return compute.state === 'active' ? Math.max(0, nowMs - compute.usage.addedUntilMs) : 0;
}

/** The usage of a compute up to `nowMs`, without changing it. */
export function usageAt(compute: Compute, nowMs: number): Usage {
  const { usage } = compute;
  const activeMs = pendingMs(compute, nowMs);
  return {
    ...usage,
    addedUntilMs: nowMs,
    activeMs: usage.activeMs + activeMs,
    cuMs: usage.cuMs + activeMs * sizeOf(compute),
    cuMsLow: usage.cuMsLow + activeMs * compute.minCu,
    cuMsHigh: usage.cuMsHigh + activeMs * compute.maxCu,
  };
}

/** Awake time by cause, up to `nowMs`. */
export function causesAt(compute: Compute, nowMs: number): ReadonlyMap<string, number> {
  const activeMs = pendingMs(compute, nowMs);
  if (activeMs === 0) return compute.usage.causes;
  const cause = causeOf(compute);
  return new Map(compute.usage.causes).set(cause, (compute.usage.causes.get(cause) ?? 0) + activeMs);
}

/** Adds the usage since the last update to the ledger of a branch. */
function addPending(ledger: QuarterLedger, compute: Compute, nowMs: number): void {
  const cu = sizeOf(compute);
  let fromMs = nowMs - pendingMs(compute, nowMs);
  while (fromMs < nowMs) {
    const quarter = Math.floor(fromMs / QUARTER_MS);
    const toMs = Math.min(nowMs, (quarter + 1) * QUARTER_MS);
    const { cuMs, activeMs } = ledger.get(quarter) ?? { cuMs: 0, activeMs: 0 };
    ledger.set(quarter, { cuMs: cuMs + (toMs - fromMs) * cu, activeMs: activeMs + toMs - fromMs });
    fromMs = toMs;
  }
}

/** Must be called before every change of a compute's state, size, timeout or clients, so that the time until now counts with the old values. */
export function addUsage(compute: Compute, nowMs: number): void {
  const activeMs = pendingMs(compute, nowMs);
  if (activeMs > 0) {
    addPending(compute.ledger, compute, nowMs);
    const { causes } = compute.usage;
    const cause = causeOf(compute);
    causes.set(cause, (causes.get(cause) ?? 0) + activeMs);
  }
  compute.usage = usageAt(compute, nowMs);
}

/** The usage of a branch up to now, without changing anything. */
export function quartersOf(world: WorldState, ledger: ProjectLedger, branchId: string): QuarterLedger {
  const closed = ledger.branches.get(branchId)?.quarters ?? new Map();
  const awake = [...(world.projects.get(ledger.projectId)?.computes.values() ?? [])].filter(
    (compute) => compute.branchId === branchId && pendingMs(compute, world.nowMs) > 0,
  );
  if (awake.length === 0) return closed;
  const quarters: QuarterLedger = new Map(closed);
  for (const compute of awake) addPending(quarters, compute, world.nowMs);
  return quarters;
}
