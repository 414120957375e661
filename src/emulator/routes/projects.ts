import { errorAnswer, refusalAnswer } from '../wire/answer.ts';
import { renderBranch, renderProject, renderProjectListItem } from '../wire/project.ts';
import type { Project } from '../world/entities.ts';
import { findProject } from '../world/find.ts';
import { pageOfProjects } from '../world/pages.ts';
import { readLimit } from './page-query.ts';
import { type ApiRequest, param, type Route } from './route.ts';

const LIMIT = { fallback: 10, max: 400 };

function projectFilter(query: ApiRequest['query']): (project: Project) => boolean {
  const { search, org_id: orgId } = query;
  return (project) =>
    (orgId === undefined || project.orgId === orgId) &&
    (search === undefined || project.name.includes(search) || project.id.includes(search));
}

const listProjects: Route = {
  method: 'GET',
  template: '/projects',
  answer({ query }, platform) {
    const limit = readLimit(query.limit, LIMIT);
    if (!limit.ok) return errorAnswer(400, limit.message);
    const world = platform.world();
    const cursor = query.cursor ? { cursor: query.cursor } : {};
    const page = pageOfProjects(world, { limit: limit.limit, ...cursor, accepts: projectFilter(query) });
    const last = page.at(-1);
    return {
      status: 200,
      body: {
        projects: page.map((project) => renderProjectListItem(project, world.nowMs)),
        applications: {},
        integrations: {},
        ...(last === undefined ? {} : { pagination: { cursor: last.id } }),
      },
    };
  },
};

const getProject: Route = {
  method: 'GET',
  template: '/projects/{project_id}',
  answer(request, platform) {
    const world = platform.world();
    const project = findProject(world, param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    return { status: 200, body: { project: renderProject(project.value, world.nowMs) } };
  },
};

const listBranches: Route = {
  method: 'GET',
  template: '/projects/{project_id}/branches',
  answer(request, platform) {
    const project = findProject(platform.world(), param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    return { status: 200, body: { branches: [...project.value.branches.values()].map(renderBranch), annotations: {} } };
  },
};

export const PROJECT_ROUTES: readonly Route[] = [listProjects, getProject, listBranches];
