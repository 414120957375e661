import type { ApiKey } from './accounts.ts';
import type { Project, WorldState } from './entities.ts';
import { rolesIn } from './keys.ts';
import { type Refusal, refuse } from './outcome.ts';

/** The permission that a request needs of its key. */
export type Need =
  | { kind: 'any_key' }
  | { kind: 'personal' }
  | { kind: 'project'; projectId: string }
  | { kind: 'create_project'; orgId?: string }
  | { kind: 'delete_project'; projectId: string }
  | { kind: 'organization'; orgId: string; role: 'admin' | 'member' };

export function seesProject(world: WorldState, key: ApiKey, project: Project): boolean {
  if (key.kind === 'project') return key.projectId === project.id;
  if (key.kind === 'organization') return key.orgId === project.orgId;
  return project.orgId === undefined || rolesIn(world.accounts, key.userId, project.orgId) !== undefined;
}

function refusal(code: Refusal['code'], message: string): Refusal {
  return refuse(code, message).refusal;
}

/** A project that a key doesn't see doesn't exist for it. */
function projectRefusal(world: WorldState, key: ApiKey, projectId: string): Refusal | undefined {
  const project = world.projects.get(projectId);
  const isSeen = project !== undefined && seesProject(world, key, project);
  return isSeen ? undefined : refusal('not_found', 'project not found');
}

/** Organization actions need a member's personal key; changes of the organization's own keys need an administrator's. */
function organizationRefusal(
  world: WorldState,
  key: ApiKey,
  need: Extract<Need, { kind: 'organization' }>,
): Refusal | undefined {
  if (key.kind !== 'personal') return refusal('forbidden', 'not allowed for organization and project-scoped API keys');
  if (!world.accounts.organizations.has(need.orgId)) return refusal('not_found', 'organization not found');
  const role = rolesIn(world.accounts, key.userId, need.orgId);
  if (role === undefined) return refusal('forbidden', 'not a member of this organization');
  if (need.role === 'admin' && role !== 'admin')
    return refusal('forbidden', 'only for administrators of the organization');
  return undefined;
}

function creationRefusal(world: WorldState, key: ApiKey, orgId: string | undefined): Refusal | undefined {
  if (key.kind === 'project') return refusal('forbidden', 'a project-scoped API key cannot create projects');
  if (key.kind === 'organization') {
    return orgId === undefined || orgId === key.orgId
      ? undefined
      : refusal('forbidden', 'not a member of this organization');
  }
  return orgId === undefined
    ? undefined
    : organizationRefusal(world, key, { kind: 'organization', orgId, role: 'member' });
}

/** Why a key may not do something; undefined if it may. */
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
