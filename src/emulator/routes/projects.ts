import type { Platform } from '../platform.ts';
import { readNewProject, readProjectName } from '../wire/bodies.ts';
import {
  type Answer,
  errorAnswer,
  refusalAnswer,
  renderBranch,
  renderComputes,
  renderOperation,
  renderProject,
  renderProjectListItem,
} from '../wire/render.ts';
import type { Project } from '../world/entities.ts';
import { findProject } from '../world/outcome.ts';
import { pageOfProjects } from '../world/pages.ts';
import { seesProject } from '../world/permissions.ts';
import { type ApiRequest, type AuthorisedRequest, needsProject, param, type Route, readLimit } from './route.ts';

const LIMIT = { fallback: 10, max: 400 };

function matchesQuery(project: Project, { search, org_id: orgId }: ApiRequest['query']): boolean {
  const isFound = search === undefined || project.name.includes(search) || project.id.includes(search);
  return isFound && (orgId === undefined || project.orgId === orgId);
}

const listProjects: Route = {
  method: 'GET',
  template: '/projects',
  needs: () => ({ kind: 'any_key' }),
  answer({ query, key }, platform) {
    const limit = readLimit(query.limit, LIMIT);
    if (!limit.ok) return errorAnswer(400, limit.message);
    const world = platform.world();
    const accepts = (project: Project): boolean => seesProject(world, key, project) && matchesQuery(project, query);
    const cursor = query.cursor ? { cursor: query.cursor } : {};
    const page = pageOfProjects(world, { limit: limit.limit, ...cursor, accepts });
    const last = page.at(-1);
    return {
      status: 200,
      body: {
        projects: page.map((project) => renderProjectListItem(project, world)),
        applications: {},
        integrations: {},
        ...(last === undefined ? {} : { pagination: { cursor: last.id } }),
      },
    };
  },
};

/** Projects that other accounts share with this one: there are none here. */
const listSharedProjects: Route = {
  method: 'GET',
  template: '/projects/shared',
  needs: () => ({ kind: 'any_key' }),
  answer: () => ({ status: 200, body: { projects: [] } }),
};

const getProject: Route = {
  method: 'GET',
  template: '/projects/{project_id}',
  needs: needsProject,
  answer(request, platform) {
    const world = platform.world();
    const project = findProject(world, param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    return { status: 200, body: { project: renderProject(project.value, world) } };
  },
};

function createdAnswer(request: AuthorisedRequest, platform: Platform): Answer {
  const wanted = readNewProject(request.body);
  if (!wanted.ok) return errorAnswer(400, wanted.message);
  // An organization's key creates in its organization, named or not.
  const orgId = request.key.orgId ?? wanted.value.orgId;
  const outcome = platform.run({
    kind: 'create_project',
    wanted: orgId === undefined ? wanted.value : { ...wanted.value, orgId },
  });
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  const { project, branch, compute, operations } = outcome;
  if (project === undefined || branch === undefined || compute === undefined)
    return errorAnswer(500, 'incomplete project');
  const world = platform.peek();
  const { nowMs } = world;
  return {
    status: 201,
    body: {
      project: renderProject(project, world),
      branch: renderBranch(branch, world),
      endpoints: renderComputes(project, world),
      operations: operations.map((operation) => renderOperation(operation, nowMs)),
      connection_uris: [],
      roles: [],
      databases: [],
    },
  };
}

const createProject: Route = {
  method: 'POST',
  template: '/projects',
  needs({ body }) {
    const wanted = readNewProject(body);
    const orgId = wanted.ok ? wanted.value.orgId : undefined;
    return orgId === undefined ? { kind: 'create_project' } : { kind: 'create_project', orgId };
  },
  answer: createdAnswer,
};

const deleteProject: Route = {
  method: 'DELETE',
  template: '/projects/{project_id}',
  needs: (request) => ({ kind: 'delete_project', projectId: param(request, 'project_id') }),
  answer(request, platform) {
    const outcome = platform.run({ kind: 'delete_project', projectId: param(request, 'project_id') });
    if (!outcome.ok) return refusalAnswer(outcome.refusal);
    if (outcome.project === undefined) return errorAnswer(500, 'incomplete project');
    return { status: 200, body: { project: renderProject(outcome.project, platform.peek()) } };
  },
};

const renameProject: Route = {
  method: 'PATCH',
  template: '/projects/{project_id}',
  needs: needsProject,
  answer(request, platform) {
    const name = readProjectName(request.body);
    if (!name.ok) return errorAnswer(400, name.message);
    const outcome = platform.run({ kind: 'rename_project', projectId: param(request, 'project_id'), name: name.value });
    if (!outcome.ok) return refusalAnswer(outcome.refusal);
    if (outcome.project === undefined) return errorAnswer(500, 'incomplete project');
    return { status: 200, body: { project: renderProject(outcome.project, platform.peek()), operations: [] } };
  },
};

/** `/projects/shared` precedes the route with a parameter in its place. */
export const PROJECT_ROUTES: readonly Route[] = [
  listProjects,
  createProject,
  listSharedProjects,
  getProject,
  renameProject,
  deleteProject,
];
