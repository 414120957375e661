import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Method } from '../../src/adapters/control-api/api-call.ts';
import { withDaemonGuard } from '../../src/adapters/control-api/control-api.ts';
import type { WireRequest } from '../../src/adapters/control-api/http-transport.ts';

const COMPUTE = '/projects/calm-sea-1/endpoints/ep-1';

async function passes(method: string, path: string, body?: string): Promise<boolean> {
  const sent: WireRequest[] = [];
  const guarded = withDaemonGuard(async (request) => {
    sent.push(request);
    return { kind: 'answer', status: 200, text: '{}' };
  });
  const request = { method: method as Method, path, key: 'k', requestId: 'r', ...(body === undefined ? {} : { body }) };
  const exchange = await guarded(request, new AbortController().signal);
  if (sent.length === 0) expect(exchange).toMatchObject({ kind: 'failure', code: 'forbidden', mayHaveArrived: false });
  return sent.length > 0;
}

test.each([
  ['GET', '/projects?limit=400', undefined],
  ['GET', `${COMPUTE}`, undefined],
  ['POST', `${COMPUTE}/restart`, undefined],
  ['PATCH', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":0.25}}'],
  ['PATCH', COMPUTE, '{"endpoint":{"suspend_timeout_seconds":-1,"autoscaling_limit_max_cu":2}}'],
])('%s %s passes', async (method, path, body) => {
  expect(await passes(method, path, body)).toBe(true);
});

test.each([
  ['a creation', 'POST', '/projects/calm-sea-1/endpoints', '{"endpoint":{"branch_id":"br-1","type":"read_write"}}'],
  ['a key', 'POST', '/organizations/org-1/api_keys', '{"key_name":"k","project_id":"p"}'],
  ['a key without a body', 'POST', '/api_keys', undefined],
  ['a deletion', 'DELETE', COMPUTE, undefined],
  ['a suspension', 'POST', `${COMPUTE}/suspend`, undefined],
  ['a start', 'POST', `${COMPUTE}/start`, undefined],
  ['a restart with a body', 'POST', `${COMPUTE}/restart`, '{}'],
  ['a restart with a query', 'POST', `${COMPUTE}/restart?x=1`, undefined],
  ['a restart by way of another path', 'POST', `${COMPUTE}/suspend/../restart`, undefined],
  ['a suspension that looks like a restart', 'POST', '/projects/p/endpoints/..%2fep-1%2fsuspend%3f/restart', undefined],
  ['a restart with a line break after it', 'POST', `${COMPUTE}/restart\n`, undefined],
  ['a lower-case method', 'patch', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":0.25}}'],
  ['a PUT', 'PUT', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":0.25}}'],
  ['a read with a body', 'GET', '/projects', '{}'],
  ['a read with a line break', 'GET', '/projects\r\nx: y', undefined],
  ['a PATCH of a project', 'PATCH', '/projects/calm-sea-1', '{"endpoint":{"autoscaling_limit_min_cu":0.25}}'],
  ['a PATCH without a body', 'PATCH', COMPUTE, undefined],
  ['a PATCH of nothing', 'PATCH', COMPUTE, '{"endpoint":{}}'],
  ['a move to another branch', 'PATCH', COMPUTE, '{"endpoint":{"branch_id":"br-2"}}'],
  ['a field beside', 'PATCH', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":1,"disabled":true}}'],
  ['a second object', 'PATCH', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":1},"project":{}}'],
  ['a text for a number', 'PATCH', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":"1"}}'],
  ['an object for a number', 'PATCH', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":{"disabled":true}}}'],
  ['a list', 'PATCH', COMPUTE, '{"endpoint":[1]}'],
  ['a key given twice', 'PATCH', COMPUTE, '{"endpoint":{"disabled":true},"endpoint":{"autoscaling_limit_min_cu":1}}'],
  ['a number beyond a double', 'PATCH', COMPUTE, '{"endpoint":{"autoscaling_limit_min_cu":1e999}}'],
  ['no JSON', 'PATCH', COMPUTE, '{"endpoint":'],
])('%s is refused', async (_, method, path, body) => {
  expect(await passes(method, path, body)).toBe(false);
});

test('whatever is asked, only reads, changes of the three settings and restarts pass', async () => {
  const segment = fc.constantFrom(
    'projects',
    'endpoints',
    'restart',
    'suspend',
    'p-1',
    'ep-1',
    '..',
    '%2e%2e',
    '',
    'a?b',
  );
  const field = fc.constantFrom(
    'autoscaling_limit_min_cu',
    'autoscaling_limit_max_cu',
    'suspend_timeout_seconds',
    'disabled',
    'branch_id',
    '__proto__',
    'constructor',
  );
  const body = fc.option(
    fc
      .dictionary(
        fc.constantFrom('endpoint', 'project'),
        fc.dictionary(field, fc.oneof(fc.integer(), fc.string(), fc.boolean())),
      )
      .map((value) => JSON.stringify(value)),
    { nil: undefined },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'),
      fc.array(segment, { maxLength: 6 }).map((segments) => `/${segments.join('/')}`),
      body,
      async (method, path, text) => {
        if (!(await passes(method, path, text))) return;
        if (method === 'GET') return void expect(text).toBeUndefined();
        if (method === 'POST')
          return void expect([path, text]).toEqual(['/projects/p-1/endpoints/ep-1/restart', undefined]);
        expect(method).toBe('PATCH');
        const { endpoint, ...others } = JSON.parse(text ?? '') as { endpoint: Record<string, unknown> };
        expect(others).toEqual({});
        for (const [name, value] of Object.entries(endpoint)) {
          expect(name).toMatch(/^(autoscaling_limit_(min|max)_cu|suspend_timeout_seconds)$/);
          expect(value).toBeTypeOf('number');
        }
      },
    ),
    { numRuns: 500 },
  );
});
