import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { apiRoutes, openApiDocument } from '../../src/adapters/http/api/api-routes.ts';
import { API_ROUTES } from '../../src/adapters/http/api/route-table.ts';
import { createTokens } from '../../src/adapters/http/tokens.ts';
import type { DaemonOperator } from '../../src/ports/operator.ts';
import { memoryLog } from '../support/memory-log.ts';

describe('the OpenAPI document', () => {
  it('that is committed is the one that the code generates (npx tsx scripts/write-openapi.ts)', () => {
    const committed = JSON.parse(readFileSync(new URL('../../schema/openapi.json', import.meta.url), 'utf8'));
    expect(committed).toEqual(JSON.parse(JSON.stringify(openApiDocument())));
  });

  it('describes every route that there is, and no other', () => {
    const tokens = createTokens({ log: memoryLog(), local: 'known-to-this-machine' });
    const api = apiRoutes({ operator: {} as DaemonOperator, tokens, log: memoryLog() });
    const served = api.routes.filter(({ path, method }) => !path.includes('*') && method !== 'ALL');
    const names = served.map(({ method, path }) => `${method} ${path.replace(':id', '{id}')}`);
    // What changes something is there twice: the guard of its role, and the route.
    const described = API_ROUTES.flatMap(({ method, path, needs }) =>
      Array.from({ length: needs ? 2 : 1 }, () => `${method.toUpperCase()} ${path}`),
    );
    expect(names.toSorted()).toEqual([...described, 'GET /openapi.json'].toSorted());
  });

  it('has a role for every route that changes something, and for no other', () => {
    for (const { method, needs } of API_ROUTES) expect(needs !== undefined).toBe(method !== 'get');
  });

  it('refers only to what is in it, and calls no two routes the same', () => {
    const document = openApiDocument();
    const { schemas } = document.components as { schemas: object };
    const references = [...JSON.stringify(document).matchAll(/"#\/([^"]+)"/g)].map(([, reference]) => reference);
    const known = Object.keys(schemas).map((name) => `components/schemas/${name}`);
    expect([...new Set(references)].toSorted()).toEqual(known.toSorted());
    expect(new Set(API_ROUTES.map(({ name }) => name)).size).toBe(API_ROUTES.length);
  });
});
