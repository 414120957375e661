import { errorAnswer, refusalAnswer, renderOperation } from '../wire/render.ts';
import { cursorToMicros, microsToCursor } from '../wire/times.ts';
import { findProject } from '../world/outcome.ts';
import { pageOfOperations } from '../world/pages.ts';
import { needsProject, param, type Route, readLimit } from './route.ts';

/** The default page size is not shown in the specification; the maximum is the vendor's. */
const LIMIT = { fallback: 1000, max: 1000 };

const listOperations: Route = {
  method: 'GET',
  template: '/projects/{project_id}/operations',
  needs: needsProject,
  answer(request, platform) {
    const limit = readLimit(request.query.limit, LIMIT);
    if (!limit.ok) return errorAnswer(400, limit.message);
    const cursor = request.query.cursor || undefined;
    const micros = cursor === undefined ? undefined : cursorToMicros(cursor);
    if (cursor !== undefined && micros === undefined) return errorAnswer(400, 'cursor is not valid');
    const world = platform.world();
    const project = findProject(world, param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    const page = pageOfOperations(project.value, limit.limit, micros);
    const last = page.at(-1);
    return {
      status: 200,
      body: {
        operations: page.map((operation) => renderOperation(operation, world.nowMs)),
        ...(last === undefined ? {} : { pagination: { cursor: microsToCursor(last.createdAtMicros) } }),
      },
    };
  },
};

const getOperation: Route = {
  method: 'GET',
  template: '/projects/{project_id}/operations/{operation_id}',
  needs: needsProject,
  answer(request, platform) {
    const world = platform.world();
    const project = findProject(world, param(request, 'project_id'));
    if (!project.ok) return refusalAnswer(project.refusal);
    const operationId = param(request, 'operation_id');
    const operation = project.value.operations.findLast((candidate) => candidate.id === operationId);
    if (operation === undefined) return errorAnswer(404, 'operation not found');
    return { status: 200, body: { operation: renderOperation(operation, world.nowMs) } };
  },
};

export const OPERATION_ROUTES: readonly Route[] = [listOperations, getOperation];
