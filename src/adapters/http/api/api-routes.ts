import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { DaemonOperator } from '../../../ports/operator.ts';
import type { Log } from '../../../ports/telemetry.ts';
import { callerGuard, type Guarded, jsonGuard, roleGuard, sameOriginGuard } from '../guards.ts';
import { callerOf } from '../roles.ts';
import type { Tokens } from '../tokens.ts';
import { answer, bodyOf, idOf, queryOf } from './answer.ts';
import { openApiDocument } from './openapi.ts';
import { API_ROUTES, type ApiRoute } from './route-table.ts';

/** More than any body that makes sense has, in bytes. */
const MOST_BODY_BYTES = 64 * 1024;

type Api = Hono<Guarded>;

interface ApiOptions {
  operator: DaemonOperator;
  tokens: Tokens;
  log: Pick<Log, 'warn'>;
}

/** `/api/v1`: what people may ask and tell. Telling always needs the token. docs/http-api.md describes each route. */
export function apiRoutes({ operator, tokens, log }: ApiOptions): Api {
  const api: Api = new Hono();
  api.use(async (context, next) => {
    if (context.req.method === 'GET') context.set('staleness', operator.staleness);
    await next();
  });
  api.on(['POST', 'PUT', 'PATCH', 'DELETE'], '/*', callerGuard(tokens), sameOriginGuard());
  api.on(['POST', 'PUT', 'PATCH'], '/*', jsonGuard(), bodyLimit({ maxSize: MOST_BODY_BYTES, onError: tooLarge }));
  for (const route of API_ROUTES) {
    const [method, path] = [route.method.toUpperCase(), route.path.replace('{id}', ':id')];
    const { needs } = route;
    if (needs) api.on(method, path, roleGuard({ ...needs, log, operator }));
    api.on(method, path, (context) => serve(context, operator, route));
  }
  let document: object | undefined;
  api.get('/openapi.json', (context) => {
    document ??= openApiDocument();
    return context.json(document);
  });
  return api;
}

function tooLarge(): Response {
  const message = `a body has at most ${MOST_BODY_BYTES / 1024} KiB`;
  return Response.json({ code: 'too_large', message }, { status: 413 });
}

/** Checks a request by the schemas of its route, and answers it. */
async function serve(context: Context<Guarded>, operator: DaemonOperator, route: ApiRoute): Promise<Response> {
  const { path, query, body, status, hasNoAge } = route;
  const id = path.includes('{id}') ? idOf(context) : '';
  const asked = { id, query: query && queryOf(context, query), body: body && (await bodyOf(context, body)) };
  const { owner: given } = (asked.body ?? asked.query ?? {}) as { owner?: string };
  // Who only reads may have none.
  const holder = context.get('caller') ?? { name: undefined };
  const owner = holder.name ?? given ?? '';
  const caller = callerOf(holder, context, owner);
  return answer(context, await route.run({ operator, owner, caller, ...asked }), { status, hasNoAge });
}
