import { parseJson } from '../../common/result.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ApiResult, CallOptions, ControlApi, Project, ProjectPeriod } from '../../ports/control-api.ts';
import type { ApiAccount } from './accounts.ts';
import { malformed } from './answers.ts';
import type { Caller } from './api-call.ts';
import { type ControlApiOptions, createCaller } from './caller.ts';
import type { Exchange, Transport, WireRequest } from './http-transport.ts';
import { createProjectList } from './list-projects.ts';
import { apiCall, ask, type Request } from './requests.ts';
import {
  branchPages,
  COMPUTE,
  COMPUTES,
  computesOf,
  operationPages,
  operationsFrom,
  PROJECT,
  type ProjectRef,
  RESTART,
} from './routes.ts';
import { changedCompute, computeOf, operationOf, patchBody, periodOf } from './translate.ts';
import { createUsageReader } from './usage.ts';
import { ChangeAnswerBody, ProjectAnswer, RestartAnswerBody } from './wire.ts';

/** The calls of the port over a caller. The caller's last check decides which of them are sent. */
export function controlApiOver(options: {
  call: Caller;
  accounts: readonly ApiAccount[];
  clock: Clock;
}): Omit<ControlApi, 'permit' | 'accountStatus' | 'close' | 'usage'> {
  const { call, accounts, clock } = options;
  const listProjects = createProjectList({ call, accounts, clock });
  const lookup = createAccountLookup({
    accounts: accounts.map((account) => account.name),
    probe: (account, projectId, probeOptions) => probe({ account, projectId }, probeOptions),
  });

  /** An account with project keys is asked only about projects that it has a key for. */
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

  async function* rememberAccounts(pages: AsyncIterable<ApiResult<Project[]>>): AsyncGenerator<ApiResult<Project[]>> {
    for await (const page of pages) {
      if (page.ok) for (const { projectId, account } of page.value) lookup.remember(projectId, account);
      yield page;
    }
  }

  return {
    // Only the list of all accounts shows to which account a project belongs: one account may also see projects of an earlier one.
    listProjects: (listOptions = {}) =>
      listOptions.account === undefined ? rememberAccounts(listProjects(listOptions)) : listProjects(listOptions),
    async listComputes(project, callOptions = {}) {
      const computes = await computesOf(call, project, callOptions);
      if (!computes.ok) return computes;
      const { computes: found, unreadable } = computes.value;
      return { ok: true, value: { computes: found.map((compute) => computeOf(project, compute)), unreadable } };
    },
    projectPeriod: (project, callOptions = {}) => periodOfProject(call, project, callOptions),
    async *listBranches(projectId, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (project.ok) yield* branchPages({ call, clock }, project.value, callOptions);
      else yield project;
    },
    async *listOperations(projectId, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (project.ok) yield* operationPages({ call, clock }, project.value, callOptions);
      else yield project;
    },
    operationsFrom: (project, cursor, callOptions = {}) => operationsFrom(call, project, cursor, callOptions),
    async updateCompute(projectId, computeId, patch, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (!project.ok) return project;
      const target = targetOf(project.value, computeId);
      const request: Request = { ...target, method: 'PATCH', template: COMPUTE, body: patchBody(patch) };
      const answer = await ask(call, request, ChangeAnswerBody, callOptions);
      if (!answer.ok) return answer;
      const { endpoint, operations } = answer.value;
      if (endpoint.id !== computeId || endpoint.project_id !== projectId)
        return malformed(apiCall(request, callOptions), 'the answer is about another compute');
      return { ok: true, value: { ...changedCompute(endpoint), operations: operations.map(operationOf) } };
    },
    async restartCompute(projectId, computeId, callOptions = {}) {
      const project = await find(projectId, callOptions);
      if (!project.ok) return project;
      const request: Request = { ...targetOf(project.value, computeId), method: 'POST', template: RESTART };
      const answer = await ask(call, request, RestartAnswerBody, callOptions);
      return answer.ok ? { ok: true, value: { operations: answer.value.operations.map(operationOf) } } : answer;
    },
  };
}

async function periodOfProject(
  call: Caller,
  { account, projectId }: ProjectRef,
  options: CallOptions,
): Promise<ApiResult<ProjectPeriod>> {
  const request: Request = { account, method: 'GET', template: PROJECT, ids: { project_id: projectId } };
  const answer = await ask(call, request, ProjectAnswer, options);
  if (!answer.ok) return answer;
  const { project } = answer.value;
  if (project.id !== projectId) return malformed(apiCall(request, options), 'the answer is about another project');
  return { ok: true, value: periodOf(project) };
}

/** The account and ids of a call about one compute. */
function targetOf({ account, projectId }: ProjectRef, computeId: string): Pick<Request, 'account' | 'ids'> {
  return { account, ids: { project_id: projectId, endpoint_id: computeId } };
}

/** Finds the account of a project. If there are several, a project that was not listed yet belongs to the first account that may read it. */
function createAccountLookup(options: {
  accounts: readonly string[];
  probe: (account: string, projectId: string, options: CallOptions) => Promise<ApiResult<unknown>>;
}) {
  const { accounts, probe } = options;
  const accountByProject = new Map<string, string>();
  return {
    remember: (projectId: string, account: string) => void accountByProject.set(projectId, account),
    async find(projectId: string, callOptions: CallOptions): Promise<ApiResult<string>> {
      const account = accountByProject.get(projectId) ?? (accounts.length === 1 ? accounts[0] : undefined);
      if (account !== undefined) return { ok: true, value: account };
      let refusal: ApiResult<string> = NO_ACCOUNT;
      for (const candidate of accounts) {
        const result = await probe(candidate, projectId, callOptions);
        if (result.ok) {
          accountByProject.set(projectId, candidate);
          return { ok: true, value: candidate };
        }
        // After any error but "not found" and "forbidden" the project may still be in that account, so this error is returned.
        if (refusal === NO_ACCOUNT || (result.error.code !== 'not_found' && result.error.code !== 'forbidden')) {
          refusal = result;
        }
      }
      return refusal;
    },
  };
}

const NO_ACCOUNT: ApiResult<string> = {
  ok: false,
  error: { code: 'not_found', route: `GET ${COMPUTES}`, message: 'no account is configured' },
};

/**
 * The control API for the daemon: it reads, changes size and timeout, and restarts; nothing else passes its transport. Nothing is
 * sent before the first call. Throws if the base URL can't be used.
 */
export function createControlApi(options: ControlApiOptions): ControlApi {
  const { clock } = options;
  const { call, accounts, permit, accountStatus, close } = createCaller(options, withDaemonGuard);
  return {
    ...controlApiOver({ call, accounts, clock }),
    usage: createUsageReader({ call, clock }),
    permit,
    accountStatus,
    close,
  };
}

const ID = '[a-z0-9-]+';
const COMPUTE_PATH = new RegExp(`^/projects/${ID}/endpoints/${ID}$`);
const RESTART_PATH = new RegExp(`^/projects/${ID}/endpoints/${ID}/restart$`);
const READ_PATH = /^\/[\x21-\x7e]*$/;
const SETTINGS_FIELDS = new Set(['autoscaling_limit_min_cu', 'autoscaling_limit_max_cu', 'suspend_timeout_seconds']);

/**
 * The last check before the wire for everything the daemon sends: GET without a body, PATCH of the three settings of one compute, and
 * restart. Anything else is refused, whatever the layers above asked for. Invariant: it checks the very bytes that are sent (method, path,
 * body), not the caller's description of them.
 */
export function withDaemonGuard(send: Transport): Transport {
  return async (request, signal) => (isAllowed(request) ? send(request, signal) : REFUSAL);
}

const REFUSAL: Exchange = {
  kind: 'failure',
  code: 'forbidden',
  mayHaveArrived: false,
  message: 'not sent: the daemon may only read, change size and timeout of a compute, and restart it',
};

function isAllowed(request: WireRequest): boolean {
  const { method, path, body } = request;
  if (method === 'GET') return body === undefined && READ_PATH.test(path);
  if (method === 'POST') return body === undefined && RESTART_PATH.test(path);
  if (method === 'PATCH') return body !== undefined && COMPUTE_PATH.test(path) && isSettingsPatch(body);
  return false;
}

function isSettingsPatch(body: string): boolean {
  const parsed = parseObject(body);
  if (parsed === undefined || Object.keys(parsed).join() !== 'endpoint') return false;
  const { endpoint } = parsed;
  if (typeof endpoint !== 'object' || endpoint === null || Array.isArray(endpoint)) return false;
  const fields = Object.entries(endpoint);
  return fields.length > 0 && fields.every(([name, value]) => SETTINGS_FIELDS.has(name) && typeof value === 'number');
}

/**
 * Accepts only text that equals the serialization of its parsed value. Other text, such as a repeated key or a number beyond a double, could be
 * read differently by the service's parser.
 */
function parseObject(body: string): Record<string, unknown> | undefined {
  const parsed = parseJson(body);
  if (typeof parsed !== 'object' || parsed === null || JSON.stringify(parsed) !== body) return undefined;
  return { ...parsed };
}
