import type { ApiResult, CallOptions } from '../../ports/control-api.ts';
import { type ControlApiOptions, createCaller } from './caller.ts';
import { ask, type Request } from './requests.ts';
import { ORGANIZATION_KEYS, type ProjectRef } from './routes.ts';
import { CreatedKey } from './wire.ts';

/** A new project-scoped API key. */
interface ProjectKey {
  keyId: number;
  /** Secret; the control API shows it only in this answer. */
  key: string;
  name: string;
  createdAtMs: number;
  projectId?: string;
}

/** Creates API keys for commands. The daemon's client can't. */
interface KeyClient {
  /** Needs a personal key of a member of the organization. */
  createProjectKey(
    wanted: ProjectRef & { organizationId: string; name: string },
    options?: CallOptions,
  ): Promise<ApiResult<ProjectKey>>;
  close(): Promise<void>;
}

/** Throws if the base URL can't be used. */
export function createKeyClient(options: ControlApiOptions): KeyClient {
  const { call, close } = createCaller(options, (send) => send);
  return {
    close,
    async createProjectKey({ account, projectId, organizationId, name }, callOptions) {
      const body = { key_name: name, project_id: projectId };
      const ids = { org_id: organizationId };
      const request: Request = { account, method: 'POST', template: ORGANIZATION_KEYS, ids, body };
      // A person waits for the key, so a locked project is tried again.
      const answer = await ask(call, request, CreatedKey, { repeatLocked: true, ...callOptions });
      if (!answer.ok) return answer;
      const { id, key, created_at, project_id } = answer.value;
      const scope = project_id == null ? {} : { projectId: project_id };
      return { ok: true, value: { keyId: id, key, name: answer.value.name, createdAtMs: created_at, ...scope } };
    },
  };
}
