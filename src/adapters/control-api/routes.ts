import type { Compute } from '../../domain/compute.ts';
import type { ApiResult, CallOptions, Operation, Project } from '../../ports/control-api.ts';
import { malformed } from './answers.ts';
import type { Caller } from './api-call.ts';
import { type Page, pagesOf } from './pages.ts';
import { apiCall, ask, type Request } from './requests.ts';
import { computeOf, operationOf } from './translate.ts';
import { ComputesAnswer, OperationsPage, ProjectsPage, type WireProject } from './wire.ts';

/** The path templates of the control API, as errors and metrics show them. */
export const PROJECTS = '/projects';
export const COMPUTES = '/projects/{project_id}/endpoints';
export const COMPUTE = `${COMPUTES}/{endpoint_id}`;
export const RESTART = `${COMPUTE}/restart`;
export const OPERATIONS = '/projects/{project_id}/operations';

const PROJECTS_PER_PAGE = 400;
const OPERATIONS_PER_PAGE = 100;

/** A list of one account, page by page, with its own cursor. */
function listPages<T>(
  fetchPage: (cursor: string | undefined) => Promise<ApiResult<Page<T>>>,
  request: Request,
): AsyncGenerator<ApiResult<T[]>> {
  return pagesOf(fetchPage, () => malformed(apiCall(request, {}), 'the list has no end: a cursor came twice'));
}

/** The projects of one account. Projects that the service can't show at the moment end the list with `unavailable`. */
export async function* projectPages(
  call: Caller,
  account: string,
  options: CallOptions,
): AsyncGenerator<ApiResult<WireProject[]>> {
  const request: Request = { account, method: 'GET', template: PROJECTS };
  let hidden = 0;
  yield* listPages(async (cursor) => {
    const query = { limit: PROJECTS_PER_PAGE, cursor };
    const answer = await ask(call, { ...request, query }, ProjectsPage, options);
    if (!answer.ok) return answer;
    hidden += answer.value.unavailable_project_ids?.length ?? 0;
    return { ok: true, value: { items: answer.value.projects, cursor: answer.value.pagination?.cursor ?? undefined } };
  }, request);
  if (hidden === 0) return;
  const message = `${hidden} projects are not in the list because the service can not show them at the moment`;
  yield { ok: false, error: { code: 'unavailable', route: `GET ${PROJECTS}`, account, message } };
}

/** A project's operations, newest first. */
export function operationPages(
  call: Caller,
  account: string,
  projectId: string,
  options: CallOptions,
): AsyncGenerator<ApiResult<Operation[]>> {
  const request: Request = { account, method: 'GET', template: OPERATIONS, ids: { project_id: projectId } };
  return listPages(async (cursor) => {
    const answer = await ask(
      call,
      { ...request, query: { limit: OPERATIONS_PER_PAGE, cursor } },
      OperationsPage,
      options,
    );
    if (!answer.ok) return answer;
    const items = answer.value.operations.map(operationOf);
    return { ok: true, value: { items, cursor: answer.value.pagination?.cursor ?? undefined } };
  }, request);
}

/** All computes of a project; the API has no pages here. */
export async function computesOf(
  call: Caller,
  project: Pick<Project, 'account' | 'projectId' | 'name'>,
  options: CallOptions,
): Promise<ApiResult<Compute[]>> {
  const request: Request = {
    account: project.account,
    method: 'GET',
    template: COMPUTES,
    ids: { project_id: project.projectId },
  };
  const answer = await ask(call, request, ComputesAnswer, options);
  if (!answer.ok) return answer;
  if (answer.value.endpoints.some((endpoint) => endpoint.project_id !== project.projectId)) {
    return malformed(apiCall(request, options), 'the answer holds a compute of another project');
  }
  return { ok: true, value: answer.value.endpoints.map((endpoint) => computeOf(project, endpoint)) };
}
