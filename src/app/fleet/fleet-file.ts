import type { Compute } from '../../domain/compute/compute.ts';
import { settingsJson } from '../../domain/evaluate/fleet-plan-json.ts';
import { groupBy } from '../../domain/grouping.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Project } from '../../ports/control-api.ts';
import type { FleetReading } from './read-fleet.ts';

/** The account of projects in a fleet file that name none. */
const ONLY_ACCOUNT = 'default';

/** Returns a fleet as the content of a YAML or JSON file. Fields have the names of the control API; unknown values and defaults are left out. */
export function fleetFileOf(fleet: Pick<FleetReading, 'projects' | 'computes'>, takenAtMs: number) {
  const computes = groupBy(fleet.computes, ({ projectId }) => projectId);
  return {
    taken_at: isoInstant(takenAtMs),
    projects: fleet.projects.map((project) => fileProject(project, computes.get(project.projectId) ?? [])),
  };
}

function fileProject(project: Project, computes: readonly Compute[]) {
  const { projectId: id, name, nameUnknown = false, account, regionId, pgVersion } = project;
  return {
    id,
    ...(!nameUnknown && { name }),
    ...(account !== ONLY_ACCOUNT && { account }),
    region_id: regionId,
    ...(pgVersion !== undefined && { pg_version: pgVersion }),
    computes: computes.map(fileCompute),
  };
}

function fileCompute(compute: Compute) {
  const { startedAtMs, lastActiveAtMs, disabled } = compute;
  const branch = fileBranch(compute);
  return {
    id: compute.computeId,
    branch_id: compute.branchId,
    ...(branch && { branch }),
    type: compute.type,
    ...settingsJson(compute),
    state: compute.state,
    ...(disabled && { disabled }),
    created_at: isoInstant(compute.createdAtMs),
    ...(startedAtMs !== undefined && { started_at: isoInstant(startedAtMs) }),
    ...(lastActiveAtMs !== undefined && { last_active: isoInstant(lastActiveAtMs) }),
  };
}

function fileBranch({ branchName: name, branchRoles: roles }: Compute) {
  if (name === undefined || roles === undefined) return undefined;
  const [isDefault, isChild] = [roles.includes('default'), roles.includes('child')];
  // Without `child`, readers of the file assume that every branch but the default one has a parent.
  const child = isChild === isDefault && { child: isChild };
  return { name, default: isDefault, protected: roles.includes('protected'), ...child };
}
