import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { z } from 'zod';
import { type DaemonOperator, ID } from '../../../ports/operator.ts';
import type { Log } from '../../../ports/telemetry.ts';
import { callerGuard, type Guarded, jsonGuard, roleGuard, sameOriginGuard } from '../guards.ts';
import { callerOf, noteForbidden, type Tokens } from '../tokens.ts';
import { answer, bodyOf, idOf, queryOf } from './answer.ts';
import { API_ROUTES, type ApiRoute } from './route-table.ts';

const MAX_BODY_BYTES = 64 * 1024;

/** `/api/v1`: queries and commands of people. Commands always need a token. docs/http-api.md describes each route. */
export function apiRoutes(options: {
  operator: DaemonOperator;
  tokens: Tokens;
  log: Pick<Log, 'warn'>;
}): Hono<Guarded> {
  const { operator, tokens, log } = options;
  const api = new Hono<Guarded>();
  api.use(async (context, next) => {
    if (context.req.method === 'GET') context.set('staleness', operator.staleness);
    await next();
  });
  api.on(['POST', 'PUT', 'PATCH', 'DELETE'], '/*', callerGuard(tokens), sameOriginGuard());
  api.on(['POST', 'PUT', 'PATCH'], '/*', jsonGuard(), bodyLimit({ maxSize: MAX_BODY_BYTES, onError: tooLarge }));
  for (const route of API_ROUTES) {
    const [method, path] = [route.method.toUpperCase(), route.path.replace('{id}', ':id')];
    const { needs } = route;
    if (needs) api.on(method, path, roleGuard({ ...needs, log, operator }));
    api.on(method, path, (context) => serve(context, { operator, log }, route));
  }
  let document: object | undefined;
  api.get('/openapi.json', (context) => {
    document ??= openApiDocument();
    return context.json(document);
  });
  return api;
}

function tooLarge(): Response {
  const message = `a body has at most ${MAX_BODY_BYTES / 1024} KiB`;
  return Response.json({ code: 'too_large', message }, { status: 413 });
}

/** Validates a request by the schemas of its route, and answers it. */
async function serve(
  context: Context<Guarded>,
  { operator, log }: { operator: DaemonOperator; log: Pick<Log, 'warn'> },
  route: ApiRoute,
): Promise<Response> {
  const { path, query, body, status, omitsAge, needs } = route;
  const id = path.includes('{id}') ? idOf(context) : '';
  const input = { id, query: query && queryOf(context, query), body: body && (await bodyOf(context, body)) };
  const { owner: namedOwner } = (input.body ?? input.query ?? {}) as { owner?: string };
  // Readers may have no token.
  const holder = context.get('caller') ?? { name: undefined };
  const owner = holder.name ?? namedOwner ?? '';
  const caller = callerOf(holder, context, owner);
  const result = await route.run({ operator, owner, caller, ...input });
  if (!result.ok && result.error.code === 'forbidden' && needs) {
    const { method, path: what } = context.req;
    const refusal = {
      role: needs.role,
      what: `${method} ${what}`,
      targets: 'own',
      message: result.error.message,
    } as const;
    await noteForbidden({ operator, log }, caller, refusal);
  }
  return answer(context, result, { status, omitsAge });
}

type Json = { readonly [key: string]: unknown };

const ID_PARAMETER = { name: 'id', in: 'path', required: true, schema: { type: 'string', pattern: ID.source } };

const DESCRIPTION = `Queries and commands for a running ebb. Instants are ISO 8601 in UTC, sizes CU, timeouts seconds (-1: never).
Commands always need a bearer token; queries need one if the daemon has tokens.`;

/** The OpenAPI document of `/api/v1`, from the schemas of the routes. */
export function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  for (const route of API_ROUTES) {
    const path = `/api/v1${route.path}`;
    paths[path] = { ...paths[path], [route.method]: operationOf(route) };
  }
  return {
    openapi: '3.1.1',
    info: { title: 'ebb', version: 'v1', description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: { ...namedSchemas(), Error: ERROR },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' }, password: { type: 'http', scheme: 'basic' } },
    },
  };
}

function namedSchemas(): Json {
  return Object.assign({}, ...API_ROUTES.map(({ answer }) => schemaOf(answer, 'output').named));
}

const ERROR = {
  type: 'object',
  properties: { code: { type: 'string' }, message: { type: 'string', description: 'One line: what to do.' } },
  required: ['code', 'message'],
};

function operationOf({ method, path, name, summary, query, body, answer, status = 200 }: ApiRoute): Json {
  const parameters = [...(path.includes('{id}') ? [ID_PARAMETER] : []), ...(query ? parametersOf(query) : [])];
  return {
    operationId: name,
    summary,
    security: method === 'get' ? [{}, { token: [] }, { password: [] }] : [{ token: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, ...contentOf(schemaOf(body, 'input').schema) } }),
    responses: {
      [status]: { description: 'Done', ...contentOf(schemaOf(answer, 'output').schema) },
      '4XX': { description: 'Refused', ...contentOf({ $ref: '#/components/schemas/Error' }) },
      '5XX': { description: 'Not now', ...contentOf({ $ref: '#/components/schemas/Error' }) },
    },
  };
}

function parametersOf(query: z.ZodObject): Json[] {
  const { properties = {} } = schemaOf(query, 'input').schema as { properties?: Record<string, Json> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
}

function contentOf(schema: Json): Json {
  return { content: { 'application/json': { schema } } };
}

/** The JSON Schema, and the named schemas that it refers to. Wrapped into an object, since only there a named schema becomes a reference. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): { schema: Json; named: Readonly<Record<string, Json>> } {
  const text = JSON.stringify(z.toJSONSchema(z.object({ it: schema }), { io }));
  const { properties, $defs = {} } = JSON.parse(text.replaceAll('#/$defs/', '#/components/schemas/'));
  const entries = Object.entries<Json>($defs).map(([name, { id: _id, ...one }]) => [name, one]);
  return { schema: properties.it, named: Object.fromEntries(entries) };
}
