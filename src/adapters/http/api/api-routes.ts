import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { DaemonOperator } from '../../../ports/operator.ts';
import { bearerGuard, jsonGuard, sameOriginGuard } from '../guards.ts';
import { answer, bodyOf, idOf, queryOf } from './answer.ts';
import {
  ApproveBody,
  DecisionsQuery,
  EndQuery,
  FreezeBody,
  HoldBody,
  PageQuery,
  ReleaseBody,
  RestoreBody,
} from './bodies.ts';

/** More than any body that makes sense has, in bytes. */
const MOST_BODY_BYTES = 64 * 1024;

/** `/api/v1`: what people may ask and tell. Telling always needs the token. docs/http-api.md describes each route. */
export function apiRoutes({ operator, writeToken }: { operator: DaemonOperator; writeToken: string }): Hono {
  const api = new Hono();
  api.use(async (context, next) => {
    await next();
    context.header('cache-control', 'no-store');
  });
  api.on(['POST', 'PUT', 'PATCH', 'DELETE'], '/*', bearerGuard(writeToken), sameOriginGuard());
  api.on(['POST', 'PUT', 'PATCH'], '/*', jsonGuard(), bodyLimit({ maxSize: MOST_BODY_BYTES, onError: tooLarge }));
  addReads(api, operator);
  addOverrides(api, operator);
  addDeeds(api, operator);
  return api;
}

function tooLarge(): Response {
  const message = `a body has at most ${MOST_BODY_BYTES / 1024} KiB`;
  return Response.json({ code: 'too_large', message }, { status: 413 });
}

function addReads(api: Hono, operator: DaemonOperator): void {
  api.get('/status', async (context) => answer(context, await operator.status(), (status) => status));
  api.get('/computes', async (context) =>
    answer(context, await operator.computes(queryOf(context, PageQuery)), ({ items, next }) => ({
      computes: items,
      next,
    })),
  );
  api.get('/decisions', async (context) =>
    answer(context, await operator.decisions(queryOf(context, DecisionsQuery)), (decisions) => ({ decisions })),
  );
  api.get('/records', async (context) =>
    answer(context, await operator.records(queryOf(context, PageQuery)), ({ items, next }) => ({
      records: items,
      next,
    })),
  );
  api.get('/plan', async (context) => context.json(await operator.plan()));
}

function addOverrides(api: Hono, operator: DaemonOperator): void {
  api.get('/holds', async (context) =>
    answer(context, await operator.holds(queryOf(context, PageQuery)), ({ items, next }) => ({ holds: items, next })),
  );
  api.post('/holds', async (context) => {
    const { for_seconds, size, suspend_timeout_seconds, ...body } = await bodyOf(context, HoldBody);
    const fields = {
      ...(size && { size: { minCu: size.min_cu, maxCu: size.max_cu } }),
      ...(suspend_timeout_seconds !== undefined && { suspendTimeoutSeconds: suspend_timeout_seconds }),
    };
    const held = await operator.hold({ ...body, ...fields, forSeconds: for_seconds });
    return answer(context, held, (hold) => hold, 201);
  });
  api.delete('/holds/:id', async (context) => {
    const ended = await operator.release({ target: idOf(context), ...queryOf(context, EndQuery) });
    return answer(context, ended, (released) => released);
  });
  api.get('/freezes', async (context) =>
    answer(context, await operator.freezes(queryOf(context, PageQuery)), ({ items, next }) => ({
      freezes: items,
      next,
    })),
  );
  api.post('/freezes', async (context) => {
    const { for_seconds, allow_raise, ...body } = await bodyOf(context, FreezeBody);
    const frozen = await operator.freeze({ ...body, forSeconds: for_seconds, allowRaise: allow_raise });
    return answer(context, frozen, (freeze) => freeze, 201);
  });
  api.delete('/freezes', async (context) => {
    const ended = await operator.thaw({ id: 'all', ...queryOf(context, EndQuery) });
    return answer(context, ended, (thawed) => thawed);
  });
  api.delete('/freezes/:id', async (context) => {
    const ended = await operator.thaw({ id: idOf(context), ...queryOf(context, EndQuery) });
    return answer(context, ended, (thawed) => thawed);
  });
}

function addDeeds(api: Hono, operator: DaemonOperator): void {
  api.post('/release', async (context) =>
    answer(context, await operator.release(await bodyOf(context, ReleaseBody)), (released) => released),
  );
  api.post('/approve', async (context) =>
    answer(context, await operator.approve(await bodyOf(context, ApproveBody)), (approved) => approved),
  );
  api.post('/restore', async (context) =>
    answer(context, await operator.restore(await bodyOf(context, RestoreBody)), (restored) => restored),
  );
}
