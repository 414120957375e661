import type { Accounts, ApiKey } from '../world/accounts.ts';
import { wireTime } from './times.ts';

type WireKey = Record<string, unknown>;

function commonFields(key: ApiKey): WireKey {
  return {
    id: key.id,
    name: key.name,
    created_at: wireTime(key.createdAtMs),
    project_id: key.projectId,
  };
}

function usageFields(key: ApiKey): WireKey {
  return {
    last_used_at: key.lastUsedAtMs === undefined ? null : wireTime(key.lastUsedAtMs),
    last_used_from_addr: key.lastUsedFrom ?? '',
  };
}

/** The only answer that carries the secret. */
export function renderNewKey(key: ApiKey): WireKey {
  return { ...commonFields(key), key: key.token, created_by: key.userId };
}

export function renderKey(key: ApiKey, accounts: Accounts): WireKey {
  const creator = { id: key.userId, name: accounts.users.get(key.userId)?.name ?? '', image: '' };
  return { ...commonFields(key), created_by: creator, ...usageFields(key) };
}

export function renderRevokedKey(key: ApiKey): WireKey {
  return { ...commonFields(key), created_by: key.userId, ...usageFields(key), revoked: true };
}
