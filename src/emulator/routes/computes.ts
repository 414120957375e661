import type { Platform } from '../platform.ts';
import { computeChanges, newCompute, parseInput } from '../wire/bodies.ts';
import {
  type Answer,
  errorAnswer,
  refusalAnswer,
  renderCompute,
  renderComputes,
  renderOperation,
} from '../wire/render.ts';
import type { Command } from '../world/execute.ts';
import { findCompute, findProject } from '../world/outcome.ts';
import { type ApiRequest, needsProject, param, type Route, readRoute } from './route.ts';

const COMPUTES = '/projects/{project_id}/endpoints';
const COMPUTE = `${COMPUTES}/{endpoint_id}`;

function ids(request: ApiRequest): { projectId: string; computeId: string } {
  return { projectId: param(request, 'project_id'), computeId: param(request, 'endpoint_id') };
}

/** Executes a command on a compute and answers with the compute and its operations; with 204 if there is no compute to delete. */
function changeCompute(platform: Platform, command: Command & { projectId: string }, status = 200): Answer {
  const outcome = platform.run(command);
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  const world = platform.peek();
  const project = findProject(world, command.projectId);
  if (!project.ok || outcome.compute === undefined) return { status: 204 };
  return {
    status,
    body: {
      endpoint: renderCompute(outcome.compute, project.value, world),
      operations: outcome.operations.map((operation) => renderOperation(operation, world.nowMs)),
    },
  };
}

const listComputes = readRoute(COMPUTES, (project, _request, world) => ({
  status: 200,
  body: { endpoints: renderComputes(project, world) },
}));

const getCompute = readRoute(COMPUTE, (project, request, world) => {
  const compute = findCompute(world, project.id, param(request, 'endpoint_id'));
  if (!compute.ok) return refusalAnswer(compute.refusal);
  return { status: 200, body: { endpoint: renderCompute(compute.value, project, world) } };
});

const updateCompute: Route = {
  method: 'PATCH',
  template: COMPUTE,
  needs: needsProject,
  answer(request, platform) {
    const changes = parseInput(computeChanges, request.body);
    if (!changes.ok) return errorAnswer(400, changes.message);
    return changeCompute(platform, { kind: 'update_compute', ...ids(request), changes: changes.value });
  },
};

const createCompute: Route = {
  method: 'POST',
  template: COMPUTES,
  needs: needsProject,
  answer(request, platform) {
    const wanted = parseInput(newCompute, request.body);
    if (!wanted.ok) return errorAnswer(400, wanted.message);
    const projectId = param(request, 'project_id');
    return changeCompute(platform, { kind: 'create_compute', projectId, wanted: wanted.value }, 201);
  },
};

const deleteCompute: Route = {
  method: 'DELETE',
  template: COMPUTE,
  needs: needsProject,
  answer: (request, platform) => changeCompute(platform, { kind: 'delete_compute', ...ids(request) }),
};

function powerRoute(verb: 'start' | 'suspend' | 'restart'): Route {
  return {
    method: 'POST',
    template: `${COMPUTE}/${verb}`,
    needs: needsProject,
    answer: (request, platform) => changeCompute(platform, { kind: `${verb}_compute`, ...ids(request) }),
  };
}

export const COMPUTE_ROUTES: readonly Route[] = [
  listComputes,
  createCompute,
  getCompute,
  updateCompute,
  deleteCompute,
  powerRoute('start'),
  powerRoute('suspend'),
  powerRoute('restart'),
];
