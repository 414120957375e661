import type {
  ApiResult,
  CallOptions,
  ControlApi,
  ControlApiError,
  Operation,
  Project,
} from '../../ports/control-api.ts';
import { createAccountLookup } from './account-lookup.ts';
import { malformed } from './answers.ts';
import type { Caller } from './api-call.ts';
import { type ControlApiOptions, createCaller } from './caller.ts';
import { withDaemonGuard } from './daemon-guard.ts';
import { apiCall, ask, type Request } from './requests.ts';
import { COMPUTE, computesOf, operationPages, projectPages, RESTART } from './routes.ts';
import { operationOf, patchBody, projectOf, settingsFrom } from './translate.ts';
import { ChangeAnswerBody, RestartAnswerBody } from './wire.ts';

/**
 * The control API for the daemon: it reads, changes size and timeout, and restarts; nothing else passes its transport. Nothing is
 * sent before the first call. Throws if the base URL can't be used.
 */
export function createControlApi(options: ControlApiOptions): ControlApi {
  const { call, close } = createCaller(options, withDaemonGuard);
  const accountNames = options.accounts.map((account) => account.name);
  const lookup = createAccountLookup({
    accounts: accountNames,
    probe: (account, projectId, probeOptions = {}) =>
      computesOf(call, { account, projectId, name: projectId }, probeOptions),
  });
  return {
    listProjects: (callOptions = {}) => listAll(call, accountNames, lookup.remember, callOptions),
    listComputes: (project, callOptions = {}) => computesOf(call, project, callOptions),
    async *listOperations(projectId, callOptions = {}): AsyncGenerator<ApiResult<Operation[]>> {
      const account = await lookup.find(projectId, callOptions);
      if (account.ok) yield* operationPages(call, account.value, projectId, callOptions);
      else yield account;
    },
    async updateCompute(projectId, computeId, patch, callOptions = {}) {
      const account = await lookup.find(projectId, callOptions);
      if (!account.ok) return account;
      const request: Request = {
        ...compute(account.value, projectId, computeId),
        method: 'PATCH',
        template: COMPUTE,
        body: patchBody(patch),
      };
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
      const account = await lookup.find(projectId, callOptions);
      if (!account.ok) return account;
      const request: Request = { ...compute(account.value, projectId, computeId), method: 'POST', template: RESTART };
      const answer = await ask(call, request, RestartAnswerBody, callOptions);
      return answer.ok ? { ok: true, value: { operations: answer.value.operations.map(operationOf) } } : answer;
    },
    close,
  };
}

function compute(account: string, projectId: string, computeId: string) {
  return { account, ids: { project_id: projectId, endpoint_id: computeId } };
}

/** All accounts, one after the other; what went wrong with one of them comes last, so that it doesn't hide the others. */
async function* listAll(
  call: Caller,
  accounts: readonly string[],
  remember: (projectId: string, account: string) => void,
  options: CallOptions,
): AsyncGenerator<ApiResult<Project[]>> {
  let firstError: ControlApiError | undefined;
  const seen = new Set<string>();
  for (const account of accounts) {
    for await (const page of projectPages(call, account, options)) {
      if (!page.ok) {
        firstError ??= page.error;
        continue;
      }
      // A project that two accounts can see belongs to the first.
      const mine = page.value.filter((project) => !seen.has(project.id));
      for (const project of mine) {
        seen.add(project.id);
        remember(project.id, account);
      }
      if (mine.length > 0) yield { ok: true, value: mine.map((project) => projectOf(account, project)) };
    }
  }
  if (firstError !== undefined) yield { ok: false, error: firstError };
}
