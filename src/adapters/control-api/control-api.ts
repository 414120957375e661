import type { ApiResult, CallOptions, ControlApi, Project } from '../../ports/control-api.ts';
import { createAccountLookup } from './account-lookup.ts';
import type { ApiAccount } from './accounts.ts';
import { malformed } from './answers.ts';
import type { Caller } from './api-call.ts';
import { createProjectList } from './list-projects.ts';
import { apiCall, ask, type Request } from './requests.ts';
import {
  branchPages,
  COMPUTE,
  COMPUTES,
  computesOf,
  operationPages,
  operationsFrom,
  type ProjectRef,
  RESTART,
} from './routes.ts';
import { computeOf, operationOf, patchBody, settingsFrom } from './translate.ts';
import { ChangeAnswerBody, RestartAnswerBody } from './wire.ts';

/** The calls of the port over a caller, whatever that lets through. */
export function controlApiOver(options: {
  call: Caller;
  accounts: readonly ApiAccount[];
}): Omit<ControlApi, 'permit' | 'accountStatus' | 'close' | 'usage'> {
  const { call, accounts } = options;
  const listProjects = createProjectList({ call, accounts });
  const lookup = createAccountLookup({
    accounts: accounts.map((account) => account.name),
    probe: (account, projectId, probeOptions = {}) => probe({ account, projectId }, probeOptions),
  });

  /** An account with a key for each project is not asked about one that it has no key for. */
  async function probe(project: ProjectRef, probeOptions: CallOptions): Promise<ApiResult<unknown>> {
    const withKeys = await accounts
      .find(({ name }) => name === project.account)
      ?.projectIds?.()
      .catch(() => undefined);
    if (withKeys?.includes(project.projectId) !== false) return computesOf(call, project, probeOptions);
    const message = 'not sent: there is no key for this project';
    return { ok: false, error: { code: 'not_found', route: `GET ${COMPUTES}`, account: project.account, message } };
  }

  async function find(projectId: string, callOptions: CallOptions): Promise<ApiResult<ProjectRef>> {
    const account = await lookup.find(projectId, callOptions);
    return account.ok ? { ok: true, value: { account: account.value, projectId } } : account;
  }

  async function* remembered(pages: AsyncIterable<ApiResult<Project[]>>): AsyncGenerator<ApiResult<Project[]>> {
    for await (const page of pages) {
      if (page.ok) for (const { projectId, account } of page.value) lookup.remember(projectId, account);
      yield page;
    }
  }

  return {
    // What one account can see may belong to another.
    listProjects: (listOptions = {}) =>
      listOptions.account === undefined ? remembered(listProjects(listOptions)) : listProjects(listOptions),
    async listComputes(project, callOptions = {}) {
      const computes = await computesOf(call, project, callOptions);
      if (!computes.ok) return computes;
      const { computes: found, unreadable } = computes.value;
      return { ok: true, value: { computes: found.map((compute) => computeOf(project, compute)), unreadable } };
    },
    async *listBranches(projectId, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (project.ok) yield* branchPages(call, project.value, callOptions);
      else yield project;
    },
    async *listOperations(projectId, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (project.ok) yield* operationPages(call, project.value, callOptions);
      else yield project;
    },
    operationsFrom: (project, cursor, callOptions = {}) => operationsFrom(call, project, cursor, callOptions),
    async updateCompute(projectId, computeId, patch, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (!project.ok) return project;
      const target = compute(project.value, computeId);
      const request: Request = { ...target, method: 'PATCH', template: COMPUTE, body: patchBody(patch) };
      const answer = await ask(call, request, ChangeAnswerBody, callOptions);
      if (!answer.ok) return answer;
      const { endpoint, operations } = answer.value;
      if (endpoint.id !== computeId)
        return malformed(apiCall(request, callOptions), 'the answer is about another compute');
      return {
        ok: true,
        value: {
          settings: settingsFrom(endpoint),
          state: endpoint.current_state,
          ...(endpoint.pending_state == null ? {} : { pendingState: endpoint.pending_state }),
          operations: operations.map(operationOf),
        },
      };
    },
    async restartCompute(projectId, computeId, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (!project.ok) return project;
      const request: Request = { ...compute(project.value, computeId), method: 'POST', template: RESTART };
      const answer = await ask(call, request, RestartAnswerBody, callOptions);
      return answer.ok ? { ok: true, value: { operations: answer.value.operations.map(operationOf) } } : answer;
    },
  };
}

/** The account and ids of a call about one compute. */
export function compute({ account, projectId }: ProjectRef, computeId: string): Pick<Request, 'account' | 'ids'> {
  return { account, ids: { project_id: projectId, endpoint_id: computeId } };
}
