import type { Compute, ComputeSettings, ComputeType, WorldState } from './entities.ts';
import { noUsage } from './usage.ts';

interface NewCompute {
  id: string;
  projectId: string;
  type: ComputeType;
  settings: ComputeSettings;
  state: Compute['state'];
  createdAtMs: number;
  creationSource: string;
}

/** A compute that nobody has used yet. */
export function computeRecord(world: WorldState, wanted: NewCompute): Compute {
  const { id, projectId, type, settings, state, createdAtMs, creationSource } = wanted;
  return {
    id,
    projectId,
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
  };
}
