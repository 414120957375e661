import type { ApiKey } from './accounts.ts';
import type { Project, WorldState } from './entities.ts';
import { roleIn } from './keys.ts';
import { type Refusal, refuse } from './outcome.ts';

/** The permission that a request needs. */
export type Need =
  | { kind: 'any_key' }
  | { kind: 'personal' }
  | { kind: 'project'; projectId: string }
  | { kind: 'create_project'; orgId: string | undefined }
  | { kind: 'delete_project'; projectId: string }
  | { kind: 'organization'; orgId: string; role: 'admin' | 'member' };

export function seesProject(world: WorldState, key: ApiKey, project: Project): boolean {
  if (key.kind === 'project') return key.projectId === project.id;
  if (key.kind === 'organization') return key.orgId === project.orgId;
  return project.orgId === undefined || roleIn(world.accounts, key.userId, project.orgId) !== undefined;
}

function refusal(code: Refusal['code'], message: string): Refusal {
  return refuse(code, message).refusal;
}

/** For a key that may not see a project, the project doesn't exist. */
function projectRefusal(world: WorldState, key: ApiKey, projectId: string): Refusal | undefined {
  const project = world.projects.get(projectId);
  const isSeen = project !== undefined && seesProject(world, key, project);
  return isSeen ? undefined : refusal('not_found', 'project not found');
}

/** Organization actions need the personal key of a member, or of an administrator. */
function organizationRefusal(
  world: WorldState,
  key: ApiKey,
  need: Extract<Need, { kind: 'organization' }>,
): Refusal | undefined {
  if (key.kind !== 'personal') return refusal('forbidden', 'not allowed for organization and project-scoped API keys');
  if (!world.accounts.organizations.has(need.orgId)) return refusal('not_found', 'organization not found');
  const role = roleIn(world.accounts, key.userId, need.orgId);
  if (role === undefined) return refusal('forbidden', 'not a member of this organization');
  if (need.role === 'admin' && role !== 'admin')
    return refusal('forbidden', 'only for administrators of the organization');
  return undefined;
}

function creationRefusal(world: WorldState, key: ApiKey, orgId: string | undefined): Refusal | undefined {
  if (key.kind === 'project') return refusal('forbidden', 'a project-scoped API key cannot create projects');
  if (orgId === undefined) return undefined;
  if (key.kind === 'personal') return organizationRefusal(world, key, { kind: 'organization', orgId, role: 'member' });
  return orgId === key.orgId ? undefined : refusal('forbidden', 'not a member of this organization');
}

/** The refusal of a request; undefined if its key has the permission. */
export function permissionRefusal(world: WorldState, key: ApiKey, need: Need): Refusal | undefined {
  switch (need.kind) {
    case 'any_key':
      return undefined;
    case 'personal':
      return key.kind === 'personal' ? undefined : refusal('forbidden', 'only for personal API keys');
    case 'project':
      return projectRefusal(world, key, need.projectId);
    case 'create_project':
      return creationRefusal(world, key, need.orgId);
    case 'delete_project':
      if (key.kind === 'project') return refusal('forbidden', 'a project-scoped API key cannot delete its project');
      return projectRefusal(world, key, need.projectId);
    case 'organization':
      return organizationRefusal(world, key, need);
  }
}
