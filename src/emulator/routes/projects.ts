import type { Platform } from '../platform.ts';
import { newProject, parseInput, projectName } from '../wire/bodies.ts';
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
import { pageOfProjects } from '../world/pages.ts';
import { seesProject } from '../world/permissions.ts';
import {
  type ApiRequest,
  type AuthorisedRequest,
  needsProject,
  outcomeAnswer,
  param,
  type Route,
  readLimit,
  readRoute,
} from './route.ts';

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
    const page = pageOfProjects(world, { limit: limit.limit, cursor: query.cursor || undefined, accepts });
    const last = page.at(-1);
    return {
      status: 200,
      body: {
        projects: page.map((project) => renderProjectListItem(project, world)),
        applications: {},
        integrations: {},
        pagination: last && { cursor: last.id },
      },
    };
  },
};

/** No other account shares projects with this one. */
const listSharedProjects: Route = {
  method: 'GET',
  template: '/projects/shared',
  needs: () => ({ kind: 'any_key' }),
  answer: () => ({ status: 200, body: { projects: [] } }),
};

const getProject = readRoute('/projects/{project_id}', (project, _request, world) => ({
  status: 200,
  body: { project: renderProject(project, world) },
}));

function createdAnswer(request: AuthorisedRequest, platform: Platform): Answer {
  const wanted = parseInput(newProject, request.body);
  if (!wanted.ok) return errorAnswer(400, wanted.message);
  // With an organization's key, `org_id` may be left out.
  const orgId = request.key.orgId ?? wanted.value.orgId;
  const outcome = platform.run({ kind: 'create_project', wanted: { ...wanted.value, orgId } });
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  const { project, branch, compute, operations } = outcome;
  if (project === undefined || branch === undefined || compute === undefined)
    return errorAnswer(500, 'incomplete project');
  const world = platform.peek();
  return {
    status: 201,
    body: {
      project: renderProject(project, world),
      branch: renderBranch(branch, world),
      endpoints: renderComputes(project, world),
      operations: operations.map((operation) => renderOperation(operation, world.nowMs)),
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
    const wanted = parseInput(newProject, body);
    return { kind: 'create_project', orgId: wanted.ok ? wanted.value.orgId : undefined };
  },
  answer: createdAnswer,
};

const deleteProject: Route = {
  method: 'DELETE',
  template: '/projects/{project_id}',
  needs: (request) => ({ kind: 'delete_project', projectId: param(request, 'project_id') }),
  answer(request, platform) {
    const outcome = platform.run({ kind: 'delete_project', projectId: param(request, 'project_id') });
    return outcomeAnswer(outcome, 'project', (project) => ({ project: renderProject(project, platform.peek()) }));
  },
};

const renameProject: Route = {
  method: 'PATCH',
  template: '/projects/{project_id}',
  needs: needsProject,
  answer(request, platform) {
    const name = parseInput(projectName, request.body);
    if (!name.ok) return errorAnswer(400, name.message);
    const outcome = platform.run({ kind: 'rename_project', projectId: param(request, 'project_id'), name: name.value });
    return outcomeAnswer(outcome, 'project', (project) => ({
      project: renderProject(project, platform.peek()),
      operations: [],
    }));
  },
};

/** `/projects/shared` must precede `/projects/{project_id}`. */
export const PROJECT_ROUTES: readonly Route[] = [
  listProjects,
  createProject,
  listSharedProjects,
  getProject,
  renameProject,
  deleteProject,
];
