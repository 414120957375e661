import type { Compute, ComputeSettings, ComputeType, Project, WorldState } from './entities.ts';
import { branchLedger, noUsage } from './usage.ts';

interface NewCompute {
  id: string;
  project: Project;
  type: ComputeType;
  settings: ComputeSettings;
  state: Compute['state'];
  createdAtMs: number;
  creationSource: string;
}

/** A compute that nobody has used yet. */
export function computeRecord(world: WorldState, wanted: NewCompute): Compute {
  const { id, project, type, settings, state, createdAtMs, creationSource } = wanted;
  return {
    id,
    projectId: project.id,
    branchId: settings.branchId,
    type,
    name: settings.name,
    minCu: settings.minCu,
    maxCu: settings.maxCu,
    suspendTimeoutSeconds: settings.suspendTimeoutSeconds,
    disabled: settings.disabled,
    poolerEnabled: settings.poolerEnabled,
    pgSettings: settings.pgSettings,
    state,
    pendingState: undefined,
    createdAtMs,
    updatedAtMs: createdAtMs,
    lastActiveAtMs: undefined,
    startedAtMs: undefined,
    suspendedAtMs: undefined,
    creationSource,
    queue: [],
    connected: [],
    waiting: [],
    suspensionCheckAtMs: undefined,
    usage: noUsage(world.nowMs),
    ledger: branchLedger(world, project, settings.branchId),
    awake: [],
  };
}
