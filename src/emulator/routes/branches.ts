import { readBranchName, readNewBranch } from '../wire/bodies.ts';
import { errorAnswer, refusalAnswer, renderBranch, renderComputes, renderOperation } from '../wire/render.ts';
import { findProject } from '../world/outcome.ts';
import { pageOfBranches } from '../world/pages.ts';
import { needsProject, param, type Route, readLimit } from './route.ts';

const BRANCHES = '/projects/{project_id}/branches';
const LIMIT = { fallback: 10_000, max: 10_000 };

const listBranches: Route = {
  method: 'GET',
  template: BRANCHES,
  needs: needsProject,
  answer(request, platform) {
    const limit = readLimit(request.query.limit, LIMIT);
    if (!limit.ok) return errorAnswer(400, limit.message);
    const project = findProject(platform.world(), param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    const { search = '', cursor } = request.query;
    const page = pageOfBranches(project.value, { limit: limit.limit, search, ...(cursor ? { cursor } : {}) });
    const next = page.next === undefined ? {} : { next: page.next };
    return {
      status: 200,
      body: {
        branches: page.branches.map((branch) => renderBranch(branch, platform.peek())),
        annotations: {},
        pagination: { sort_by: 'created_at', sort_order: 'ASC', ...next },
      },
    };
  },
};

/** Branches have no annotations here; the vendor's document requires the empty shape. */
function annotationOf(branchId: string): Record<string, unknown> {
  return { object: { type: 'console/branch', id: branchId }, value: {} };
}

const getBranch: Route = {
  method: 'GET',
  template: `${BRANCHES}/{branch_id}`,
  needs: needsProject,
  answer(request, platform) {
    const project = findProject(platform.world(), param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    const branch = project.value.branches.get(param(request, 'branch_id'));
    return branch === undefined
      ? errorAnswer(404, 'branch not found')
      : { status: 200, body: { branch: renderBranch(branch, platform.peek()), annotation: annotationOf(branch.id) } };
  },
};

const listComputesOfBranch: Route = {
  method: 'GET',
  template: `${BRANCHES}/{branch_id}/endpoints`,
  needs: needsProject,
  answer(request, platform) {
    const world = platform.world();
    const project = findProject(world, param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    const branchId = param(request, 'branch_id');
    if (!project.value.branches.has(branchId)) return errorAnswer(404, 'branch not found');
    return { status: 200, body: { endpoints: renderComputes(project.value, world, branchId) } };
  },
};

const renameBranch: Route = {
  method: 'PATCH',
  template: `${BRANCHES}/{branch_id}`,
  needs: needsProject,
  answer(request, platform) {
    const name = readBranchName(request.body);
    if (!name.ok) return errorAnswer(400, name.message);
    const ids = { projectId: param(request, 'project_id'), branchId: param(request, 'branch_id') };
    const outcome = platform.run({ kind: 'rename_branch', ...ids, name: name.value });
    if (!outcome.ok) return refusalAnswer(outcome.refusal);
    if (outcome.branch === undefined) return errorAnswer(500, 'incomplete branch');
    return { status: 200, body: { branch: renderBranch(outcome.branch, platform.peek()), operations: [] } };
  },
};

const createBranch: Route = {
  method: 'POST',
  template: BRANCHES,
  needs: needsProject,
  answer(request, platform) {
    const wanted = readNewBranch(request.body);
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
  answer(request, platform) {
    const projectId = param(request, 'project_id');
    const branchId = param(request, 'branch_id');
    const outcome = platform.run({ kind: 'delete_branch', projectId, branchId });
    if (!outcome.ok) return refusalAnswer(outcome.refusal);
    if (outcome.branch === undefined) return errorAnswer(500, 'incomplete branch');
    return { status: 200, body: { branch: renderBranch(outcome.branch, platform.peek()), operations: [] } };
  },
};

export const BRANCH_ROUTES: readonly Route[] = [
  listBranches,
  createBranch,
  getBranch,
  renameBranch,
  deleteBranch,
  listComputesOfBranch,
];
