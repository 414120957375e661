export type Role = 'admin' | 'member';
export type KeyKind = 'personal' | 'organization' | 'project';
export type Plan = 'free' | 'launch' | 'scale';

export interface User {
  /** A UUID. */
  id: string;
  name: string;
  email: string;
  /** By organization id. */
  memberships: Map<string, Role>;
}

export interface Organization {
  id: string;
  name: string;
  createdAtMs: number;
}

export interface ApiKey {
  id: number;
  token: string;
  name: string;
  kind: KeyKind;
  createdAtMs: number;
  /** The user who made it; a personal key acts in this user's name. */
  userId: string;
  /** Of an organization key, and of a project-scoped one made in an organization. */
  orgId?: string;
  /** Of a project-scoped key. */
  projectId?: string;
  lastUsedAtMs?: number;
  lastUsedFrom?: string;
}

/** Users, organizations and keys. Revoked keys are removed. */
export interface Accounts {
  users: Map<string, User>;
  organizations: Map<string, Organization>;
  keysByToken: Map<string, ApiKey>;
  lastKeyId: number;
}

/** The user who is there from the start: an administrator of every organization, and owner of all personal projects. */
export const FIRST_USER_ID = '629982cc-de05-43db-ae16-28f2399c4910';
