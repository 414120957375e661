import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { DaemonOperator } from '../../../ports/operator.ts';
import { callerGuard, type Guarded, jsonGuard, sameOriginGuard } from '../guards.ts';
import type { Tokens } from '../tokens.ts';
import { answer, bodyOf, idOf, queryOf, withAge } from './answer.ts';
import {
  ApproveBody,
  DecisionsQuery,
  EndQuery,
  FleetQuery,
  FreezeBody,
  HoldBody,
  PageQuery,
  ReleaseBody,
  RestoreBody,
  UsageQuery,
} from './bodies.ts';
import { openApiDocument } from './openapi.ts';

/** More than any body that makes sense has, in bytes. */
const MOST_BODY_BYTES = 64 * 1024;

const HOLD_ID = /^h-[0-9a-f]+$/;

type Api = Hono<Guarded>;

/** `/api/v1`: what people may ask and tell. Telling always needs the token. docs/http-api.md describes each route. */
export function apiRoutes({ operator, tokens }: { operator: DaemonOperator; tokens: Tokens }): Api {
  const api: Api = new Hono();
  api.use(async (context, next) => {
    if (context.req.method === 'GET') context.set('staleness', operator.staleness);
    await next();
  });
  api.on(['POST', 'PUT', 'PATCH', 'DELETE'], '/*', callerGuard(tokens), sameOriginGuard());
  api.on(['POST', 'PUT', 'PATCH'], '/*', jsonGuard(), bodyLimit({ maxSize: MOST_BODY_BYTES, onError: tooLarge }));
  addReads(api, operator);
  addOverrides(api, operator);
  addActions(api, operator);
  return api;
}

function tooLarge(): Response {
  const message = `a body has at most ${MOST_BODY_BYTES / 1024} KiB`;
  return Response.json({ code: 'too_large', message }, { status: 413 });
}

/** Who tells it: the name that the token has, else the one that is given. */
function owning(context: Context<Guarded>, owner: string | undefined): { owner: string } {
  return { owner: context.get('caller').name ?? owner ?? '' };
}

function ending(context: Context<Guarded>): { owner: string } {
  return owning(context, queryOf(context, EndQuery).owner);
}

function addReads(api: Api, operator: DaemonOperator): void {
  let document: object | undefined;
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
  api.get('/usage', async (context) =>
    answer(context, await operator.usage(queryOf(context, UsageQuery)), ({ items, next }) => ({ usage: items, next })),
  );
  api.get('/openapi.json', (context) => {
    document ??= openApiDocument();
    return context.json(document);
  });
  api.get('/plan', async (context) => context.json(await operator.plan()));
  api.get('/fleet', async (context) =>
    context.json(withAge(context, await operator.fleet(queryOf(context, FleetQuery)))),
  );
  api.get('/computes/:id', async (context) =>
    answer(context, await operator.compute(idOf(context)), (compute) => compute),
  );
}

function addOverrides(api: Api, operator: DaemonOperator): void {
  api.get('/holds', async (context) =>
    answer(context, await operator.holds(queryOf(context, PageQuery)), ({ items, next }) => ({ holds: items, next })),
  );
  api.post('/holds', async (context) => {
    const { for_seconds, size, suspend_timeout_seconds, owner, ...body } = await bodyOf(context, HoldBody);
    const fields = {
      ...(size && { size: { minCu: size.min_cu, maxCu: size.max_cu } }),
      ...(suspend_timeout_seconds !== undefined && { suspendTimeoutSeconds: suspend_timeout_seconds }),
    };
    const held = await operator.hold({ ...body, ...owning(context, owner), ...fields, forSeconds: for_seconds });
    return answer(context, held, (hold) => hold, 201);
  });
  api.delete('/holds/:id', async (context) => {
    const target = idOf(context);
    // A compute is released in whole by POST /release: here that would be more than was asked for.
    const ended = HOLD_ID.test(target)
      ? await operator.release({ target, ...ending(context) })
      : ({ ok: false, error: { code: 'not_found', message: 'no hold has this id; see GET /api/v1/holds' } } as const);
    return answer(context, ended, (released) => released);
  });
  api.get('/freezes', async (context) =>
    answer(context, await operator.freezes(queryOf(context, PageQuery)), ({ items, next }) => ({
      freezes: items,
      next,
    })),
  );
  api.post('/freezes', async (context) => {
    const { for_seconds, allow_raise, owner, ...body } = await bodyOf(context, FreezeBody);
    const frozen = await operator.freeze({
      ...{ ...body, ...owning(context, owner) },
      ...{ forSeconds: for_seconds, allowRaise: allow_raise },
    });
    return answer(context, frozen, (freeze) => freeze, 201);
  });
  api.delete('/freezes', async (context) => {
    const ended = await operator.unfreeze({ id: 'all', ...ending(context) });
    return answer(context, ended, (unfrozen) => unfrozen);
  });
  api.delete('/freezes/:id', async (context) => {
    const ended = await operator.unfreeze({ id: idOf(context), ...ending(context) });
    return answer(context, ended, (unfrozen) => unfrozen);
  });
}

function addActions(api: Api, operator: DaemonOperator): void {
  api.post('/release', async (context) => {
    const { owner, ...body } = await bodyOf(context, ReleaseBody);
    return answer(context, await operator.release({ ...body, ...owning(context, owner) }), (released) => released);
  });
  api.post('/approve', async (context) => {
    const { owner, ...body } = await bodyOf(context, ApproveBody);
    return answer(context, await operator.approve({ ...body, ...owning(context, owner) }), (approved) => approved);
  });
  api.post('/restore', async (context) => {
    const { owner, ...body } = await bodyOf(context, RestoreBody);
    return answer(context, await operator.restore({ ...body, ...owning(context, owner) }), (restored) => restored);
  });
}
