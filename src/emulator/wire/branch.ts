import type { Branch } from '../world/entities.ts';
import { wireTime } from './times.ts';

export function renderBranch(branch: Branch): Record<string, unknown> {
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
    cpu_used_sec: 0,
    compute_time_seconds: 0,
    active_time_seconds: 0,
    written_data_bytes: 0,
    data_transfer_bytes: 0,
    created_at: wireTime(branch.createdAtMs),
    updated_at: wireTime(branch.updatedAtMs),
  };
}
