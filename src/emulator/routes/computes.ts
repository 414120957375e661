import type { Platform } from '../platform.ts';
import { readComputeChanges, readNewCompute } from '../wire/bodies.ts';
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
import { type ApiRequest, needsProject, param, type Route } from './route.ts';

const COMPUTES = '/projects/{project_id}/endpoints';
const COMPUTE = `${COMPUTES}/{endpoint_id}`;

function ids(request: ApiRequest): { projectId: string; computeId: string } {
  return { projectId: param(request, 'project_id'), computeId: param(request, 'endpoint_id') };
}

/** Carries a command on a compute out and shows the compute and its operations; 204 if it was gone already. */
function answerChange(platform: Platform, command: Command, projectId: string, status: number): Answer {
  const outcome = platform.run(command);
  if (!outcome.ok) return refusalAnswer(outcome.refusal);
  const world = platform.peek();
  const project = findProject(world, projectId);
  if (!project.ok || outcome.compute === undefined) return { status: 204 };
  return {
    status,
    body: {
      endpoint: renderCompute(outcome.compute, project.value, world),
      operations: outcome.operations.map((operation) => renderOperation(operation, world.nowMs)),
    },
  };
}

const listComputes: Route = {
  method: 'GET',
  template: COMPUTES,
  needs: needsProject,
  answer(request, platform) {
    const world = platform.world();
    const project = findProject(world, param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    return { status: 200, body: { endpoints: renderComputes(project.value, world) } };
  },
};

const getCompute: Route = {
  method: 'GET',
  template: COMPUTE,
  needs: needsProject,
  answer(request, platform) {
    const { projectId, computeId } = ids(request);
    const world = platform.world();
    const project = findProject(world, projectId);
    if (!project.ok) return refusalAnswer(project.refusal);
    const compute = findCompute(world, projectId, computeId);
    if (!compute.ok) return refusalAnswer(compute.refusal);
    return { status: 200, body: { endpoint: renderCompute(compute.value, project.value, world) } };
  },
};

const updateCompute: Route = {
  method: 'PATCH',
  template: COMPUTE,
  needs: needsProject,
  answer(request, platform) {
    const changes = readComputeChanges(request.body);
    if (!changes.ok) return errorAnswer(400, changes.message);
    const { projectId, computeId } = ids(request);
    return answerChange(
      platform,
      { kind: 'update_compute', projectId, computeId, changes: changes.value },
      projectId,
      200,
    );
  },
};

const createCompute: Route = {
  method: 'POST',
  template: COMPUTES,
  needs: needsProject,
  answer(request, platform) {
    const wanted = readNewCompute(request.body);
    if (!wanted.ok) return errorAnswer(400, wanted.message);
    const projectId = param(request, 'project_id');
    return answerChange(platform, { kind: 'create_compute', projectId, wanted: wanted.value }, projectId, 201);
  },
};

const deleteCompute: Route = {
  method: 'DELETE',
  template: COMPUTE,
  needs: needsProject,
  answer(request, platform) {
    const { projectId, computeId } = ids(request);
    return answerChange(platform, { kind: 'delete_compute', projectId, computeId }, projectId, 200);
  },
};

function powerRoute(verb: 'start' | 'suspend' | 'restart'): Route {
  return {
    method: 'POST',
    template: `${COMPUTE}/${verb}`,
    needs: needsProject,
    answer(request, platform) {
      const { projectId, computeId } = ids(request);
      return answerChange(platform, { kind: `${verb}_compute`, projectId, computeId }, projectId, 200);
    },
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
