import { bucketEnd, bucketStart, planNow, usedInMonth } from '../consumption/history.ts';
import { type Accounts, type ApiKey, FIRST_USER_ID } from '../world/accounts.ts';
import { lastActiveAtMs } from '../world/connections.ts';
import type { Branch, Compute, Operation, Project, WorldState } from '../world/entities.ts';
import { shownUpdatedAtMs } from '../world/operations.ts';
import type { Refusal, RefusalCode } from '../world/outcome.ts';
import { usageAt } from '../world/usage.ts';
import { wireTime, wireTimeIfAny } from './times.ts';

const MIB = 1_048_576;
const BRANCH_SIZE_LIMIT_MIB = 16_777_216;

function latest(left: number | undefined, right: number | undefined): number | undefined {
  return left === undefined || right === undefined ? (left ?? right) : Math.max(left, right);
}

function totalsOf(project: Project, { nowMs, behaviours }: WorldState) {
  let { activeMs, cuMs, lastActiveAtMs: seenAtMs } = project.deletedUsage;
  for (const compute of project.computes.values()) {
    const usage = usageAt(compute, nowMs);
    activeMs += usage.activeMs;
    cuMs += usage.cuMs;
    seenAtMs = latest(seenAtMs, lastActiveAtMs(compute, nowMs, behaviours.lastActive));
  }
  return {
    activeSeconds: Math.floor(activeMs / 1000),
    cuSeconds: Math.floor(cuMs / 1000),
    lastActiveAtMs: seenAtMs,
  };
}

function commonFields(project: Project, totals: ReturnType<typeof totalsOf>, nowMs: number) {
  return {
    id: project.id,
    platform_id: 'aws',
    region_id: project.regionId,
    name: project.name,
    provisioner: 'k8s-neonvm',
    pg_version: project.pgVersion,
    proxy_host: proxyHost(project.regionId),
    branch_logical_size_limit: BRANCH_SIZE_LIMIT_MIB,
    branch_logical_size_limit_bytes: BRANCH_SIZE_LIMIT_MIB * MIB,
    store_passwords: true,
    cpu_used_sec: totals.cuSeconds,
    creation_source: 'console',
    history_retention_seconds: 86_400,
    created_at: wireTime(project.createdAtMs),
    updated_at: wireTime(shownUpdatedAtMs(project, nowMs)),
    owner_id: project.orgId ?? FIRST_USER_ID,
    org_id: project.orgId,
    compute_last_active_at: wireTimeIfAny(totals.lastActiveAtMs),
  };
}

/** A project as the list shows it. `locked` is in the specification, though the vendor's newer document has dropped it. */
export function renderProjectListItem(project: Project, world: WorldState): Record<string, unknown> {
  const totals = totalsOf(project, world);
  // Faster than a spread: a page has up to 400 of these.
  return Object.assign(commonFields(project, totals, world.nowMs), {
    locked: false,
    active_time: totals.activeSeconds,
  });
}

/** A single project, with its usage of the billing month and its plan. */
export function renderProject(project: Project, world: WorldState): Record<string, unknown> {
  const used = usedInMonth(world, project.id);
  const monthStart = bucketStart(world.nowMs, 'monthly');
  return {
    ...commonFields(project, totalsOf(project, world), world.nowMs),
    active_time_seconds: Math.floor(used.activeMs / 1000),
    compute_time_seconds: Math.floor(used.cuMs / 1000),
    written_data_bytes: 0,
    data_transfer_bytes: 0,
    data_storage_bytes_hour: 0,
    consumption_period_start: wireTime(monthStart),
    consumption_period_end: wireTime(bucketEnd(monthStart, 'monthly')),
    owner: {
      email: 'owner@example.com',
      name: 'Owner',
      branches_limit: -1,
      subscription_type: `${planNow(world, project.id)}_v3`,
    },
  };
}

/** A branch with its usage since the start of the billing month. */
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

/** `last_active` of a compute that was never active. */
const NEVER_ACTIVE = '2000-01-01T00:00:00Z';

function proxyHost(regionId: string): string {
  return `${regionId.replace(/^aws-/, '')}.aws.neon.tech`;
}

export function renderCompute(
  compute: Compute,
  project: Project,
  { nowMs, behaviours }: WorldState,
): Record<string, unknown> {
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
    creation_source: 'console',
    last_active: wireTimeIfAny(lastActiveAtMs(compute, nowMs, behaviours.lastActive)) ?? NEVER_ACTIVE,
    created_at: wireTime(compute.createdAtMs),
    updated_at: wireTime(compute.updatedAtMs),
    proxy_host: host,
    provisioner: 'k8s-neonvm',
  };
}

/** The computes of a project, or of one branch of it. */
export function renderComputes(project: Project, world: WorldState, branchId?: string): Record<string, unknown>[] {
  return [...project.computes.values()]
    .filter((compute) => branchId === undefined || compute.branchId === branchId)
    .map((compute) => renderCompute(compute, project, world));
}

export function renderOperation(operation: Operation, nowMs: number): Record<string, unknown> {
  const createdAtMs = Math.floor(operation.createdAtMicros / 1000);
  return {
    id: operation.id,
    project_id: operation.projectId,
    branch_id: operation.branchId,
    // The creation of a branch is in the queue of a compute, but concerns the branch only.
    endpoint_id: operation.action.startsWith('create_') ? undefined : operation.computeId,
    action: operation.action,
    status: operation.status,
    error: operation.error,
    failures_count: operation.failuresCount,
    created_at: wireTime(createdAtMs),
    updated_at: wireTime(operation.updatedAtMs),
    total_duration_ms: Math.max(0, (operation.endedAtMs ?? nowMs) - createdAtMs),
  };
}

function keyFields(key: ApiKey) {
  return {
    id: key.id,
    name: key.name,
    created_at: wireTime(key.createdAtMs),
    project_id: key.projectId,
  };
}

function lastUseFields(key: ApiKey) {
  return {
    last_used_at: key.lastUsedAtMs === undefined ? null : wireTime(key.lastUsedAtMs),
    last_used_from_addr: key.lastUsedFrom ?? '',
  };
}

/** Renders a new key. No other answer has the secret. */
export function renderNewKey(key: ApiKey): Record<string, unknown> {
  return { ...keyFields(key), key: key.token, created_by: key.userId };
}

export function renderKey(key: ApiKey, accounts: Accounts): Record<string, unknown> {
  const creator = { id: key.userId, name: accounts.users.get(key.userId)?.name ?? '', image: '' };
  return { ...keyFields(key), created_by: creator, ...lastUseFields(key) };
}

export function renderRevokedKey(key: ApiKey): Record<string, unknown> {
  return { ...keyFields(key), created_by: key.userId, ...lastUseFields(key), revoked: true };
}

/** A route's answer before it is encoded. */
export interface Answer {
  status: number;
  /** Absent: no body. */
  body?: unknown;
  headers?: Record<string, string>;
}

const STATUS: Record<RefusalCode, number> = {
  invalid: 400,
  unauthorised: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  precondition: 412,
  not_ready: 422,
  locked: 423,
};

/** An error in the vendor's format; the id of the request is added when it is served. */
export function errorAnswer(status: number, message: string, retryAfterSeconds?: number): Answer {
  const answer: Answer = { status, body: { code: '', message } };
  return retryAfterSeconds === undefined
    ? answer
    : { ...answer, headers: { 'retry-after': String(retryAfterSeconds) } };
}

export function refusalAnswer(refusal: Refusal): Answer {
  return errorAnswer(STATUS[refusal.code], refusal.message);
}
