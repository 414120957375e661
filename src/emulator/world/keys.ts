import type { Accounts, ApiKey, KeyKind, Role } from './accounts.ts';
import type { WorldState } from './entities.ts';
import { type Outcome, refuse } from './outcome.ts';
import { nextToken } from './random.ts';

export interface NewKey {
  kind: KeyKind;
  name: string;
  userId: string;
  orgId?: string | undefined;
  projectId?: string | undefined;
  /** Absent: a random one. */
  token?: string | undefined;
}

export function createKey(world: WorldState, wanted: NewKey): Outcome {
  const { accounts } = world;
  const project = wanted.projectId === undefined ? undefined : world.projects.get(wanted.projectId);
  if (wanted.projectId !== undefined && (project === undefined || project.orgId !== wanted.orgId)) {
    return refuse('not_found', 'project not found');
  }
  const token = wanted.token ?? nextToken(world.random);
  if (accounts.keysByToken.has(token)) return refuse('conflict', 'this key exists already');
  accounts.lastKeyId += 1;
  const key: ApiKey = { ...wanted, token, id: accounts.lastKeyId, createdAtMs: world.nowMs };
  accounts.keysByToken.set(token, key);
  return { ok: true, operations: [], key };
}

/** Owners of keys: a user of personal keys, an organization, or (in the console) anyone. */
export type KeyOwner = { userId: string } | { orgId: string } | 'anyone';

function belongsTo(key: ApiKey, owner: KeyOwner): boolean {
  if (owner === 'anyone') return true;
  if ('orgId' in owner) return key.kind !== 'personal' && key.orgId === owner.orgId;
  return key.kind === 'personal' && key.userId === owner.userId;
}

export function keysOf(accounts: Accounts, owner: KeyOwner): ApiKey[] {
  return [...accounts.keysByToken.values()].filter((key) => belongsTo(key, owner));
}

export function revokeKey(world: WorldState, keyId: number, owner: KeyOwner): Outcome {
  const key = keysOf(world.accounts, owner).find((candidate) => candidate.id === keyId);
  if (key === undefined) return refuse('not_found', 'api key not found');
  world.accounts.keysByToken.delete(key.token);
  return { ok: true, operations: [], key };
}

/** A project's key is valid while the project exists and is in the key's organization. */
function isValid(world: WorldState, key: ApiKey): boolean {
  if (key.kind !== 'project') return true;
  const project = world.projects.get(key.projectId ?? '');
  return project !== undefined && project.orgId === key.orgId;
}

/** Finds the key of a request and records its use. */
export function useKey(world: WorldState, token: string, from: string): Outcome {
  const key = world.accounts.keysByToken.get(token);
  if (key === undefined || !isValid(world, key)) {
    return refuse('unauthorised', 'supplied credentials do not pass authentication');
  }
  key.lastUsedAtMs = world.nowMs;
  key.lastUsedFrom = from;
  return { ok: true, operations: [], key };
}

export function roleIn(accounts: Accounts, userId: string, orgId: string): Role | undefined {
  return accounts.users.get(userId)?.memberships.get(orgId);
}

/** Gives a user a role in an organization, or removes the user from it. */
export function setMembership(world: WorldState, userId: string, orgId: string, role: Role | 'none'): Outcome {
  const user = world.accounts.users.get(userId);
  if (user === undefined) return refuse('not_found', 'user not found');
  if (!world.accounts.organizations.has(orgId)) return refuse('not_found', 'organization not found');
  if (role === 'none') user.memberships.delete(orgId);
  else user.memberships.set(orgId, role);
  return { ok: true, operations: [] };
}
