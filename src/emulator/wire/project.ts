import { FIRST_USER_ID } from '../world/accounts.ts';
import { lastActiveAtMs } from '../world/connections.ts';
import type { Project } from '../world/entities.ts';
import { usageAt } from '../world/usage.ts';
import { proxyHost } from './compute.ts';
import { wireTime, wireTimeIfAny } from './times.ts';

const MIB = 1_048_576;
const BRANCH_SIZE_LIMIT_MIB = 16_777_216;

interface ProjectTotals {
  activeSeconds: number;
  cuSeconds: number;
  lastActiveAtMs: number | undefined;
}

function latest(left: number | undefined, right: number | undefined): number | undefined {
  return left === undefined || right === undefined ? (left ?? right) : Math.max(left, right);
}

function totalsOf(project: Project, nowMs: number): ProjectTotals {
  let { activeMs, cuMs, lastActiveAtMs: seenAtMs } = project.deletedUsage;
  for (const compute of project.computes.values()) {
    const usage = usageAt(compute, nowMs);
    activeMs += usage.activeMs;
    cuMs += usage.cuMs;
    seenAtMs = latest(seenAtMs, lastActiveAtMs(compute, nowMs));
  }
  return {
    activeSeconds: Math.floor(activeMs / 1000),
    cuSeconds: Math.floor(cuMs / 1000),
    lastActiveAtMs: seenAtMs,
  };
}

function commonFields(project: Project, totals: ProjectTotals) {
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
    updated_at: wireTime(project.updatedAtMs),
    owner_id: project.orgId ?? FIRST_USER_ID,
    org_id: project.orgId,
    compute_last_active_at: wireTimeIfAny(totals.lastActiveAtMs),
  };
}

/** A project as the list shows it. `locked` is in the specification, though the vendor's newer document has dropped it. */
export function renderProjectListItem(project: Project, nowMs: number): Record<string, unknown> {
  const totals = totalsOf(project, nowMs);
  // Not a spread: a page has up to 400 of these.
  return Object.assign(commonFields(project, totals), { locked: false, active_time: totals.activeSeconds });
}

/** A project by itself: what it has consumed is counted from its creation. */
export function renderProject(project: Project, nowMs: number): Record<string, unknown> {
  const totals = totalsOf(project, nowMs);
  const month = new Date(nowMs);
  const monthStart = Date.UTC(month.getUTCFullYear(), month.getUTCMonth(), 1);
  const monthEnd = Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1);
  return {
    ...commonFields(project, totals),
    active_time_seconds: totals.activeSeconds,
    compute_time_seconds: totals.cuSeconds,
    written_data_bytes: 0,
    data_transfer_bytes: 0,
    data_storage_bytes_hour: 0,
    consumption_period_start: wireTime(monthStart),
    consumption_period_end: wireTime(monthEnd),
  };
}
