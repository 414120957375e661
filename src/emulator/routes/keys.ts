import type { Platform } from '../platform.ts';
import { newKey, parseInput } from '../wire/bodies.ts';
import { type Answer, errorAnswer, renderKey, renderNewKey, renderRevokedKey } from '../wire/render.ts';
import { type KeyOwner, keysOf, type NewKey } from '../world/keys.ts';
import { outcomeAnswer, param, type Route } from './route.ts';

const ORG_KEYS = '/organizations/{org_id}/api_keys';

function listAnswer(platform: Platform, owner: KeyOwner): Answer {
  const { accounts } = platform.world();
  return { status: 200, body: keysOf(accounts, owner).map((key) => renderKey(key, accounts)) };
}

export function createKeyAnswer(platform: Platform, wanted: NewKey): Answer {
  return outcomeAnswer(platform.run({ kind: 'create_key', wanted }), 'key', renderNewKey);
}

export function revokeKeyAnswer(platform: Platform, keyId: string, owner: KeyOwner): Answer {
  return outcomeAnswer(platform.run({ kind: 'revoke_key', keyId: Number(keyId), owner }), 'key', renderRevokedKey);
}

const listKeys: Route = {
  method: 'GET',
  template: '/api_keys',
  needs: () => ({ kind: 'personal' }),
  answer: ({ key }, platform) => listAnswer(platform, { userId: key.userId }),
};

const createKey: Route = {
  method: 'POST',
  template: '/api_keys',
  needs: () => ({ kind: 'personal' }),
  answer({ body, key }, platform) {
    const wanted = parseInput(newKey, body);
    if (!wanted.ok) return errorAnswer(400, wanted.message);
    return createKeyAnswer(platform, { kind: 'personal', name: wanted.value.key_name, userId: key.userId });
  },
};

const revokeKey: Route = {
  method: 'DELETE',
  template: '/api_keys/{key_id}',
  needs: () => ({ kind: 'personal' }),
  answer: (request, platform) => revokeKeyAnswer(platform, param(request, 'key_id'), { userId: request.key.userId }),
};

const listOrgKeys: Route = {
  method: 'GET',
  template: ORG_KEYS,
  needs: (request) => ({ kind: 'organization', orgId: param(request, 'org_id'), role: 'member' }),
  answer: (request, platform) => listAnswer(platform, { orgId: param(request, 'org_id') }),
};

/** Any member may create a key for one project, but only an administrator one for the organization. */
const createOrgKey: Route = {
  method: 'POST',
  template: ORG_KEYS,
  needs(request) {
    const wanted = parseInput(newKey, request.body);
    const isScoped = wanted.ok && wanted.value.project_id !== undefined;
    return { kind: 'organization', orgId: param(request, 'org_id'), role: isScoped ? 'member' : 'admin' };
  },
  answer(request, platform) {
    const wanted = parseInput(newKey, request.body);
    if (!wanted.ok) return errorAnswer(400, wanted.message);
    const { key_name: name, project_id: projectId } = wanted.value;
    const owner = { name, userId: request.key.userId, orgId: param(request, 'org_id') };
    return createKeyAnswer(
      platform,
      projectId === undefined ? { ...owner, kind: 'organization' } : { ...owner, kind: 'project', projectId },
    );
  },
};

const revokeOrgKey: Route = {
  method: 'DELETE',
  template: `${ORG_KEYS}/{key_id}`,
  needs: (request) => ({ kind: 'organization', orgId: param(request, 'org_id'), role: 'admin' }),
  answer: (request, platform) =>
    revokeKeyAnswer(platform, param(request, 'key_id'), { orgId: param(request, 'org_id') }),
};

export const KEY_ROUTES: readonly Route[] = [listKeys, createKey, revokeKey, listOrgKeys, createOrgKey, revokeOrgKey];
