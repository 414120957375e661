export type Role = 'admin' | 'member';
export type KeyKind = 'personal' | 'organization' | 'project';
export type Plan = 'free' | 'launch' | 'scale';

interface User {
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
  /** The user who created it; a personal key has this user's permissions. */
  userId: string;
  /** Set for the key of an organization, or of a project in one. */
  orgId?: string | undefined;
  /** Set for the key of a project. */
  projectId?: string | undefined;
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

/** This user exists from the start, administers every organization, and owns all personal projects. */
export const FIRST_USER_ID = '629982cc-de05-43db-ae16-28f2399c4910';
