import type { Platform } from '../platform.ts';
import { branchName, newBranch, parseInput } from '../wire/bodies.ts';
import {
  type Answer,
  errorAnswer,
  refusalAnswer,
  renderBranch,
  renderComputes,
  renderOperation,
} from '../wire/render.ts';
import { findProject } from '../world/outcome.ts';
import { pageOfBranches } from '../world/pages.ts';
import { type ApiRequest, needsProject, outcomeAnswer, param, type Route, readLimit, readRoute } from './route.ts';

const BRANCHES = '/projects/{project_id}/branches';
const LIMIT = { fallback: 10_000, max: 10_000 };

const listBranches = readRoute(BRANCHES, (project, request, world) => {
  const limit = readLimit(request.query.limit, LIMIT);
  if (!limit.ok) return errorAnswer(400, limit.message);
  const { search = '', cursor } = request.query;
  const page = pageOfBranches(project, { limit: limit.limit, search, cursor: cursor || undefined });
  return {
    status: 200,
    body: {
      branches: page.branches.map((branch) => renderBranch(branch, world)),
      annotations: {},
      pagination: { sort_by: 'created_at', sort_order: 'ASC', next: page.next },
    },
  };
});

const getBranch = readRoute(`${BRANCHES}/{branch_id}`, (project, request, world) => {
  const branch = project.branches.get(param(request, 'branch_id'));
  if (branch === undefined) return errorAnswer(404, 'branch not found');
  // Branches have no annotations here; the vendor's document requires the empty shape.
  const annotation = { object: { type: 'console/branch', id: branch.id }, value: {} };
  return { status: 200, body: { branch: renderBranch(branch, world), annotation } };
});

const listComputesOfBranch = readRoute(`${BRANCHES}/{branch_id}/endpoints`, (project, request, world) => {
  const branchId = param(request, 'branch_id');
  if (!project.branches.has(branchId)) return errorAnswer(404, 'branch not found');
  return { status: 200, body: { endpoints: renderComputes(project, world, branchId) } };
});

function changeBranch(
  request: ApiRequest,
  platform: Platform,
  change: { kind: 'rename_branch'; name: string } | { kind: 'delete_branch' },
): Answer {
  const ids = { projectId: param(request, 'project_id'), branchId: param(request, 'branch_id') };
  return outcomeAnswer(platform.run({ ...change, ...ids }), 'branch', (branch) => ({
    branch: renderBranch(branch, platform.peek()),
    operations: [],
  }));
}

const renameBranch: Route = {
  method: 'PATCH',
  template: `${BRANCHES}/{branch_id}`,
  needs: needsProject,
  answer(request, platform) {
    const name = parseInput(branchName, request.body);
    if (!name.ok) return errorAnswer(400, name.message);
    return changeBranch(request, platform, { kind: 'rename_branch', name: name.value });
  },
};

const createBranch: Route = {
  method: 'POST',
  template: BRANCHES,
  needs: needsProject,
  answer(request, platform) {
    const wanted = parseInput(newBranch, request.body);
    if (!wanted.ok) return errorAnswer(400, wanted.message);
    const projectId = param(request, 'project_id');
    const outcome = platform.run({ kind: 'create_branch', projectId, wanted: wanted.value });
    if (!outcome.ok) return refusalAnswer(outcome.refusal);
    const world = platform.peek();
    const { branch, operations } = outcome;
    const project = findProject(world, projectId);
    if (!project.ok || branch === undefined) return errorAnswer(500, 'incomplete branch');
    return {
      status: 201,
      body: {
        branch: renderBranch(branch, world),
        endpoints: renderComputes(project.value, world, branch.id),
        operations: operations.map((operation) => renderOperation(operation, world.nowMs)),
        roles: [],
        databases: [],
        connection_uris: [],
      },
    };
  },
};

const deleteBranch: Route = {
  method: 'DELETE',
  template: `${BRANCHES}/{branch_id}`,
  needs: needsProject,
  answer: (request, platform) => changeBranch(request, platform, { kind: 'delete_branch' }),
};

export const BRANCH_ROUTES: readonly Route[] = [
  listBranches,
  createBranch,
  getBranch,
  renameBranch,
  deleteBranch,
  listComputesOfBranch,
];
