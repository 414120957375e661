import { z } from 'zod';
import { ID } from '../../../ports/operator.ts';
import { API_ROUTES, type ApiRoute } from './route-table.ts';

type Json = { readonly [key: string]: unknown };

const ID_PARAMETER = { name: 'id', in: 'path', required: true, schema: { type: 'string', pattern: ID.source } };

const DESCRIPTION = `What people and programs may ask and tell a running ebb. Instants are ISO 8601 in UTC, sizes CU, timeouts seconds (-1: never).
Telling always needs a bearer token; reading does where the daemon has tokens set.`;

/** The OpenAPI document of `/api/v1`, made of the schemas that the routes use. */
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
  return Object.assign({}, ...API_ROUTES.map(({ answer }) => make(answer, 'output').named));
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
    ...(body && { requestBody: { required: true, ...contentOf(make(body, 'input').schema) } }),
    responses: {
      [status]: { description: 'Done', ...contentOf(make(answer, 'output').schema) },
      '4XX': { description: 'Refused', ...contentOf({ $ref: '#/components/schemas/Error' }) },
      '5XX': { description: 'Not now', ...contentOf({ $ref: '#/components/schemas/Error' }) },
    },
  };
}

function parametersOf(query: z.ZodObject): Json[] {
  const { properties = {} } = make(query, 'input').schema as { properties?: Record<string, Json> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
}

function contentOf(schema: Json): Json {
  return { content: { 'application/json': { schema } } };
}

interface Made {
  schema: Json;
  /** Schemas that have a name, which others refer to. */
  named: Readonly<Record<string, Json>>;
}

/** One within another, so that what has a name is referred to even where it stands alone. */
function make(schema: z.ZodType, io: 'input' | 'output'): Made {
  const text = JSON.stringify(z.toJSONSchema(z.object({ it: schema }), { io }));
  const { properties, $defs = {} } = JSON.parse(text.replaceAll('#/$defs/', '#/components/schemas/'));
  const entries = Object.entries<Json>($defs).map(([name, { id: _id, ...one }]) => [name, one]);
  return { schema: properties.it, named: Object.fromEntries(entries) };
}
