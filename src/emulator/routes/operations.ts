import { errorAnswer, renderOperation } from '../wire/render.ts';
import { cursorToMicros, microsToCursor } from '../wire/times.ts';
import { pageOfOperations } from '../world/pages.ts';
import { param, type Route, readLimit, readRoute } from './route.ts';

/** The maximum is from the vendor's specification, which gives no default. */
const LIMIT = { fallback: 1000, max: 1000 };

const listOperations = readRoute('/projects/{project_id}/operations', (project, request, world) => {
  const limit = readLimit(request.query.limit, LIMIT);
  if (!limit.ok) return errorAnswer(400, limit.message);
  const cursor = request.query.cursor || undefined;
  const micros = cursor === undefined ? undefined : cursorToMicros(cursor);
  if (cursor !== undefined && micros === undefined) return errorAnswer(400, 'cursor is not valid');
  const page = pageOfOperations(project, limit.limit, micros);
  const last = page.at(-1);
  return {
    status: 200,
    body: {
      operations: page.map((operation) => renderOperation(operation, world.nowMs)),
      pagination: last && { cursor: microsToCursor(last.createdAtMicros) },
    },
  };
});

const getOperation = readRoute('/projects/{project_id}/operations/{operation_id}', (project, request, world) => {
  const operationId = param(request, 'operation_id');
  const operation = project.operations.findLast(({ id }) => id === operationId);
  if (operation === undefined) return errorAnswer(404, 'operation not found');
  return { status: 200, body: { operation: renderOperation(operation, world.nowMs) } };
});

export const OPERATION_ROUTES: readonly Route[] = [listOperations, getOperation];
