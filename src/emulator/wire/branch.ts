import { usedInMonth } from '../consumption/history.ts';
import type { Branch, WorldState } from '../world/entities.ts';
import { wireTime } from './times.ts';

/** A branch with what it has used since the start of the billing month. */
export function renderBranch(branch: Branch, world: WorldState): Record<string, unknown> {
  const used = usedInMonth(world, branch.projectId, branch.id);
  const cuSeconds = Math.floor(used.cuMs / 1000);
  return {
    id: branch.id,
    project_id: branch.projectId,
    parent_id: branch.parentId,
    name: branch.name,
    current_state: 'ready',
    state_changed_at: wireTime(branch.createdAtMs),
    creation_source: 'console',
    primary: branch.default,
    default: branch.default,
    protected: branch.protected,
    cpu_used_sec: cuSeconds,
    compute_time_seconds: cuSeconds,
    active_time_seconds: Math.floor(used.activeMs / 1000),
    written_data_bytes: 0,
    data_transfer_bytes: 0,
    created_at: wireTime(branch.createdAtMs),
    updated_at: wireTime(branch.updatedAtMs),
  };
}
