import type { Compute, Project } from '../world/entities.ts';
import { wireTime } from './times.ts';

/** What a compute shows as `last_active` before it was ever active. */
const NEVER_ACTIVE = '2000-01-01T00:00:00Z';

export interface WireCompute {
  id: string;
  host: string;
  project_id: string;
  branch_id: string;
  type: string;
  autoscaling_limit_min_cu: number;
  autoscaling_limit_max_cu: number;
  suspend_timeout_seconds: number;
  current_state: string;
  pending_state?: string;
  [field: string]: unknown;
}

export function proxyHost(regionId: string): string {
  return `${regionId.replace(/^aws-/, '')}.aws.neon.tech`;
}

/** Fields that are there only when they have a value. */
function optionalFields(compute: Compute): Partial<WireCompute> {
  return {
    ...(compute.pendingState === undefined ? {} : { pending_state: compute.pendingState }),
    ...(compute.name === undefined ? {} : { name: compute.name }),
    ...(compute.startedAtMs === undefined ? {} : { started_at: wireTime(compute.startedAtMs) }),
    ...(compute.suspendedAtMs === undefined ? {} : { suspended_at: wireTime(compute.suspendedAtMs) }),
  };
}

export function renderCompute(compute: Compute, project: Project): WireCompute {
  const host = proxyHost(project.regionId);
  return {
    id: compute.id,
    host: `${compute.id}.${host}`,
    project_id: compute.projectId,
    branch_id: compute.branchId,
    type: compute.type,
    autoscaling_limit_min_cu: compute.minCu,
    autoscaling_limit_max_cu: compute.maxCu,
    suspend_timeout_seconds: compute.suspendTimeoutSeconds,
    region_id: project.regionId,
    current_state: compute.state,
    settings: { pg_settings: compute.pgSettings },
    pooler_enabled: compute.poolerEnabled,
    pooler_mode: 'transaction',
    disabled: compute.disabled,
    passwordless_access: true,
    creation_source: compute.creationSource,
    last_active: compute.lastActiveAtMs === undefined ? NEVER_ACTIVE : wireTime(compute.lastActiveAtMs),
    created_at: wireTime(compute.createdAtMs),
    updated_at: wireTime(compute.updatedAtMs),
    proxy_host: host,
    provisioner: 'k8s-neonvm',
    ...optionalFields(compute),
  };
}
