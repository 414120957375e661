import { lastActiveAtMs } from '../world/connections.ts';
import type { Compute, Project } from '../world/entities.ts';
import { wireTime, wireTimeIfAny } from './times.ts';

/** What a compute shows as `last_active` before it was ever active. */
const NEVER_ACTIVE = '2000-01-01T00:00:00Z';

export function proxyHost(regionId: string): string {
  return `${regionId.replace(/^aws-/, '')}.aws.neon.tech`;
}

/** JSON leaves out what is undefined: those fields are there only when they have a value. */
export function renderCompute(compute: Compute, project: Project, nowMs: number): Record<string, unknown> {
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
    pending_state: compute.pendingState,
    name: compute.name,
    started_at: wireTimeIfAny(compute.startedAtMs),
    suspended_at: wireTimeIfAny(compute.suspendedAtMs),
    settings: { pg_settings: compute.pgSettings },
    pooler_enabled: compute.poolerEnabled,
    pooler_mode: 'transaction',
    disabled: compute.disabled,
    passwordless_access: true,
    creation_source: compute.creationSource,
    last_active: wireTimeIfAny(lastActiveAtMs(compute, nowMs)) ?? NEVER_ACTIVE,
    created_at: wireTime(compute.createdAtMs),
    updated_at: wireTime(compute.updatedAtMs),
    proxy_host: host,
    provisioner: 'k8s-neonvm',
  };
}

/** The computes of a project, of one branch or of all. */
export function renderComputes(project: Project, nowMs: number, branchId?: string): Record<string, unknown>[] {
  return [...project.computes.values()]
    .filter((compute) => branchId === undefined || compute.branchId === branchId)
    .map((compute) => renderCompute(compute, project, nowMs));
}
