import type { Compute, ComputeSettings } from '../../domain/compute/compute.ts';
import type { ApiResult, CallOptions, ControlApi, Operation } from '../../ports/control-api.ts';
import { type ControlApiOptions, createCaller } from './caller.ts';
import { compute, controlApiOver } from './control-api.ts';
import { ask, type Request } from './requests.ts';
import { COMPUTE, COMPUTES, OPERATION, ORGANIZATION_KEYS, type ProjectRef } from './routes.ts';
import { computeOf, operationOf, patchBody } from './translate.ts';
import { createUsageReader } from './usage.ts';
import { ChangeAnswerBody, ComputeAnswer, CreatedKey, DeletionAnswer, OperationAnswer } from './wire.ts';

/** A compute to create; the platform chooses absent fields. */
export interface NewCompute extends Partial<ComputeSettings> {
  branchId: string;
  type: 'read_write' | 'read_only';
}

/** A new project-scoped API key. */
interface ProjectKey {
  keyId: number;
  /** Secret, and shown only once: for the person or the file that asked for it. */
  key: string;
  name: string;
  createdAtMs: number;
  projectId?: string;
}

/** Every call of the control API. For people's commands and for tests; the daemon has {@link createControlApi} instead. */
export interface FullControlApi extends ControlApi {
  createCompute(
    project: ProjectRef,
    compute: NewCompute,
    options?: CallOptions,
  ): Promise<ApiResult<{ compute: Compute; operations: Operation[] }>>;
  getCompute(project: ProjectRef, computeId: string, options?: CallOptions): Promise<ApiResult<Compute>>;
  /** Permanent. A compute that was already gone is a success without operations. */
  deleteCompute(
    project: ProjectRef,
    computeId: string,
    options?: CallOptions,
  ): Promise<ApiResult<{ operations: Operation[] }>>;
  getOperation(project: ProjectRef, operationId: string, options?: CallOptions): Promise<ApiResult<Operation>>;
  /** Needs a personal key of a member of the organization. */
  createProjectKey(
    wanted: ProjectRef & { organizationId: string; name: string },
    options?: CallOptions,
  ): Promise<ApiResult<ProjectKey>>;
}

/** May send every request, unlike the daemon's client. Throws if the base URL can't be used. */
export function createFullControlApi(options: ControlApiOptions): FullControlApi {
  const { clock } = options;
  const { call, accounts, permit, accountStatus, close } = createCaller(options, (send) => send);
  // A person waits for the change, so a locked project is tried again.
  const patient = (callOptions: CallOptions = {}): CallOptions => ({ repeatLocked: true, ...callOptions });
  const inProject = ({ account, projectId }: ProjectRef): Pick<Request, 'account' | 'ids'> => ({
    account,
    ids: { project_id: projectId },
  });
  return {
    ...controlApiOver({ call, accounts, clock }),
    usage: createUsageReader({ call, clock }),
    permit,
    accountStatus,
    close,
    async createCompute(project, { branchId, type, ...settings }, callOptions) {
      const body = { endpoint: { branch_id: branchId, type, ...patchBody(settings).endpoint } };
      const request: Request = { ...inProject(project), method: 'POST', template: COMPUTES, body };
      const answer = await ask(call, request, ChangeAnswerBody, patient(callOptions));
      if (!answer.ok) return answer;
      const { endpoint, operations } = answer.value;
      const created = computeOf({ account: project.account, name: project.projectId }, endpoint);
      return { ok: true, value: { compute: created, operations: operations.map(operationOf) } };
    },
    async getCompute(project, computeId, callOptions) {
      const request: Request = { ...compute(project, computeId), method: 'GET', template: COMPUTE };
      const answer = await ask(call, request, ComputeAnswer, callOptions);
      if (!answer.ok) return answer;
      return {
        ok: true,
        value: computeOf({ account: project.account, name: project.projectId }, answer.value.endpoint),
      };
    },
    async deleteCompute(project, computeId, callOptions) {
      const request: Request = { ...compute(project, computeId), method: 'DELETE', template: COMPUTE };
      const answer = await ask(call, request, DeletionAnswer, patient(callOptions));
      return answer.ok ? { ok: true, value: { operations: answer.value.operations.map(operationOf) } } : answer;
    },
    async getOperation({ account, projectId }, operationId, callOptions) {
      const operationIds = { project_id: projectId, operation_id: operationId };
      const request: Request = { account, method: 'GET', template: OPERATION, ids: operationIds };
      const answer = await ask(call, request, OperationAnswer, callOptions);
      return answer.ok ? { ok: true, value: operationOf(answer.value.operation) } : answer;
    },
    async createProjectKey({ account, projectId, organizationId, name }, callOptions) {
      const body = { key_name: name, project_id: projectId };
      const request: Request = {
        account,
        method: 'POST',
        template: ORGANIZATION_KEYS,
        ids: { org_id: organizationId },
        body,
      };
      const answer = await ask(call, request, CreatedKey, patient(callOptions));
      if (!answer.ok) return answer;
      const { id, key, created_at, project_id } = answer.value;
      const scope = project_id == null ? {} : { projectId: project_id };
      return { ok: true, value: { keyId: id, key, name: answer.value.name, createdAtMs: created_at, ...scope } };
    },
  };
}
