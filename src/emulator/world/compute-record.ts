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
    ...settings,
    id,
    projectId,
    type,
    state,
    createdAtMs,
    updatedAtMs: createdAtMs,
    creationSource,
    queue: [],
    connected: [],
    waiting: [],
    usage: noUsage(world.nowMs),
  };
}
