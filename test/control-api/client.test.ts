import { describe, expect, test } from 'vitest';
import { KEY, recordingMetrics, wireCompute, wireOperation, wireProject } from './samples.ts';
import { all, client, errorOf, serve, unwrap } from './support.ts';

const PROJECT = { account: 'main', projectId: 'calm-sea-1', name: 'shop' };

const mismatch = (place: string) => `the answer is not what the specification says: ${place}`;

describe('what is read', () => {
  test('pages of projects are followed by their cursor and end at the page without items', async () => {
    const { url, requests } = await serve(({ url: path }) => {
      if (!path.includes('cursor')) return { body: { projects: [wireProject('p-1')], pagination: { cursor: 'p 1&' } } };
      if (path.includes('p%201%26')) return { body: { projects: [wireProject('p-2')], pagination: { cursor: 'p-2' } } };
      return { body: { projects: [] } };
    });
    const pages = await all(client(url).listProjects());
    expect(pages.map((page) => unwrap(page).map((project) => project.projectId))).toEqual([['p-1'], ['p-2']]);
    expect(requests.map((request) => request.url)).toEqual([
      '/api/v2/projects?limit=400',
      '/api/v2/projects?limit=400&cursor=p%201%26',
      '/api/v2/projects?limit=400&cursor=p-2',
    ]);
  });

  test('a cursor that leads back to itself ends the list with malformed', async () => {
    const { url } = await serve(() => ({ body: { projects: [wireProject('p-1')], pagination: { cursor: 'x' } } }));
    const pages = await all(client(url).listProjects());
    expect(pages.map((page) => page.ok || page.error.code)).toEqual([true, 'malformed']);
  });

  describe('a project that is listed twice', () => {
    const listing = async (first: object, second: object) => {
      const { url } = await serve(({ url: path }) =>
        path.includes('cursor')
          ? { body: { projects: [wireProject('p-1', second), wireProject('p-3')] } }
          : { body: { projects: [wireProject('p-1', first), wireProject('p-2')], pagination: { cursor: 'p-2' } } },
      );
      const pages = await all(client(url).listProjects());
      const names = pages.flatMap((page) => (page.ok ? page.value.map(({ name }) => name) : []));
      return { names, errors: pages.flatMap((page) => (page.ok ? [] : [page.error])) };
    };
    const [earlier, later] = ['2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z'];
    const others = ['name of p-2', 'name of p-3'];

    test('counts once, as it was last changed', async () => {
      expect(await listing({}, {})).toEqual({ names: ['name of p-1', ...others], errors: [] });
      const [old, now] = [
        { name: 'old', updated_at: earlier },
        { name: 'new', updated_at: later },
      ];
      expect(await listing(old, now)).toEqual({ names: [others[0], 'new', others[1]], errors: [] });
      expect(await listing(now, old)).toEqual({ names: ['new', ...others], errors: [] });
    });

    test('is an error if it is not the same, and not newer', async () => {
      const { names, errors } = await listing({ name: 'one' }, { name: 'other' });
      expect(names).toEqual(others);
      const message = 'the list shows p-1 twice, with different values';
      expect(errors).toMatchObject([{ code: 'malformed', account: 'main', message }]);
    });
  });

  test.each([
    ['twice', [wireOperation('op-1'), wireOperation('op-1', { status: 'failed' })]],
    ['of another project', [wireOperation('op-1', { project_id: 'other' })]],
  ])('an operation %s makes the answer malformed', async (_, operations) => {
    const { url } = await serve(() => ({ body: { operations } }));
    const api = client(url);
    expect((await all(api.listOperations('calm-sea-1'))).map(errorOf)).toMatchObject([{ code: 'malformed' }]);
    expect(errorOf(await api.operationsFrom(PROJECT, undefined)).code).toBe('malformed');
  });

  test('a branch that is listed twice makes the list malformed', async () => {
    const branch = { id: 'br-1', name: 'main', default: true, protected: false };
    const { url } = await serve(() => ({ body: { branches: [branch, { ...branch, name: 'other' }] } }));
    expect((await all(client(url).listBranches('calm-sea-1'))).map(errorOf)).toMatchObject([{ code: 'malformed' }]);
  });

  test.each([
    ['launch_v3', 'launch'],
    ['scale', 'scale'],
    ['free_v2', 'free'],
    ['direct_sales', undefined],
    [null, undefined],
  ])('the plan of a subscription %s is %s', async (subscription_type, plan) => {
    const project = {
      id: PROJECT.projectId,
      compute_time_seconds: 7200,
      consumption_period_start: '2026-11-01T00:00:00Z',
      consumption_period_end: '2026-12-01T00:00:00Z',
      owner: { subscription_type },
    };
    const { url } = await serve(() => ({ body: { project } }));
    const period = unwrap(await client(url).projectPeriod(PROJECT));
    expect(period).toEqual({
      ...{ cuHours: 2, fromMs: Date.parse('2026-11-01'), toMs: Date.parse('2026-12-01') },
      ...(plan !== undefined && { plan }),
    });
    const { url: other } = await serve(() => ({ body: { project: { ...project, id: 'other-1' } } }));
    expect(errorOf(await client(other).projectPeriod(PROJECT)).code).toBe('malformed');
  });

  test('projects that the service cannot show make the list end with an error, after those that it can', async () => {
    const { url } = await serve(() => ({ body: { projects: [wireProject('p-1')], unavailable_project_ids: ['p-2'] } }));
    const pages = await all(client(url).listProjects());
    expect(pages.map((page) => page.ok)).toEqual([true, false]);
  });

  test('a project of the list that is not understood is named, and does not hide the others', async () => {
    const odd = { ...wireProject('p-2'), region_id: 7 };
    const { url } = await serve(() => ({
      body: { projects: [wireProject('p-1'), odd, { id: 7 }, wireProject('p-3')] },
    }));
    const [listed, ...errors] = await all(client(url).listProjects());
    expect(listed).toMatchObject({ ok: true, value: [{ projectId: 'p-1' }, { projectId: 'p-3' }] });
    const message = expect.stringMatching(/^2 projects .* p-2: .*region_id/);
    expect(errors).toMatchObject([{ ok: false, error: { code: 'malformed', account: 'main', message } }]);
  });

  test('accounts in trouble do not hide the projects of the others, and their errors come last, one for each', async () => {
    const { url } = await serve(({ headers }) =>
      headers.authorization === 'Bearer good' ? { body: { projects: [wireProject('p-1')] } } : { status: 403 },
    );
    const keys = { a: 'bad', b: 'good', c: 'bad' };
    const accounts = Object.entries(keys).map(([name, key]) => ({ name, key: () => key }));
    const [first, ...errors] = await all(client(url, { accounts }).listProjects());
    expect(first).toMatchObject({ ok: true, value: [{ account: 'b', projectId: 'p-1' }] });
    expect(errors).toMatchObject([
      { ok: false, error: { account: 'a', code: 'forbidden' } },
      { ok: false, error: { account: 'c', code: 'forbidden' } },
    ]);
  });

  test('a timeout of 0 is read as 300, -1 stays, and the year 2000, or earlier, means never active', async () => {
    const endpoints = [
      wireCompute('ep-1', { last_active: '2000-01-01T00:00:00Z', surprise: 1 }),
      wireCompute('ep-0', { last_active: '1970-01-01T00:00:00Z' }),
      wireCompute('ep-2', { suspend_timeout_seconds: -1, pending_state: 'idle', type: 'read_only' }),
    ];
    const { url } = await serve(() => ({ body: { endpoints } }));
    const [one, older, two] = unwrap(await client(url).listComputes(PROJECT)).computes;
    expect(older).not.toHaveProperty('lastActiveAtMs');
    expect(one).toMatchObject({ computeId: 'ep-1', suspendTimeoutSeconds: 300, minCu: 0.25, projectName: 'shop' });
    expect(one).not.toHaveProperty('lastActiveAtMs');
    expect(one).not.toHaveProperty('pendingState');
    expect(two).toMatchObject({ suspendTimeoutSeconds: -1, pendingState: 'idle', type: 'read_only' });
    expect(two?.lastActiveAtMs).toBe(Date.parse('2026-03-04T05:06:07Z'));
  });

  test('an operation ends well, badly or not yet by its status; what is unknown is pending', async () => {
    const statuses = [
      'scheduling',
      'running',
      'finished',
      'failed',
      'error',
      'cancelling',
      'cancelled',
      'skipped',
      'new',
    ];
    const operations = statuses.map((status, index) => wireOperation(`op-${index}`, { status, action: 'never_heard' }));
    const { url } = await serve(() => ({ body: { operations } }));
    const [page] = await all(client(url).listOperations('calm-sea-1'));
    expect(page?.ok && page.value.map((operation) => operation.outcome)).toEqual([
      'pending',
      'pending',
      'succeeded',
      'failed',
      'failed',
      'pending',
      'failed',
      'succeeded',
      'pending',
    ]);
  });

  test.each([
    [
      'a compute that is listed twice',
      { endpoints: [wireCompute('ep-1'), wireCompute('ep-1', { autoscaling_limit_max_cu: 8 })] },
    ],
    [
      'a compute that is listed twice, once in words that are not understood',
      { endpoints: [wireCompute('ep-1'), wireCompute('ep-1', { current_state: 'odd' })] },
    ],
    ['a compute of another project', { endpoints: [wireCompute('ep-1', { project_id: 'other' })] }],
    ['no list', {}],
    ['no JSON', '<html>'],
    ['no body', ''],
  ])('%s makes the answer malformed', async (_, body) => {
    const { url } = await serve(() => ({ body }));
    expect(errorOf(await client(url).listComputes(PROJECT)).code).toBe('malformed');
  });

  test.each<[string, unknown, { computeId?: string; message: string }]>([
    ['an id that would leave its path', wireCompute('../ep'), { message: mismatch('id: invalid_format') }],
    [
      'a size that is no number',
      wireCompute('ep-2', { autoscaling_limit_max_cu: '2' }),
      { computeId: 'ep-2', message: mismatch('autoscaling_limit_max_cu: invalid_type') },
    ],
    [
      'an unknown state',
      wireCompute('ep-2', { current_state: 'napping' }),
      { computeId: 'ep-2', message: mismatch('current_state: invalid_value') },
    ],
    ['nothing at all', null, { message: mismatch('the whole body: invalid_type') }],
  ])('a compute with %s is told apart from the others', async (_, strange, unreadable) => {
    const { url } = await serve(() => ({ body: { endpoints: [wireCompute('ep-1'), strange, wireCompute('ep-3')] } }));
    const list = unwrap(await client(url).listComputes(PROJECT));
    expect(list.computes.map(({ computeId }) => computeId)).toEqual(['ep-1', 'ep-3']);
    expect(list.unreadable).toEqual([unreadable]);
  });

  test('a branch that is not understood is left out, also where its page holds no other', async () => {
    const branch = { id: 'br-1', name: 'main', default: true, protected: false };
    const { url } = await serve(({ url: path }) =>
      path.includes('cursor')
        ? { body: { branches: [branch] } }
        : { body: { branches: [{ ...branch, default: 'yes' }], pagination: { next: 'c' } } },
    );
    const pages = await all(client(url).listBranches('calm-sea-1'));
    expect(pages.flatMap(unwrap).map(({ branchId }) => branchId)).toEqual(['br-1']);
  });

  test('with several accounts, a project that was never listed is found by asking', async () => {
    const { url } = await serve(({ headers, url: path }) => {
      if (headers.authorization !== 'Bearer good') return { status: 404 };
      return path.includes('operations') ? { body: { operations: [] } } : { body: { endpoints: [] } };
    });
    const accounts = [
      { name: 'a', key: () => 'bad' },
      { name: 'b', key: () => 'good' },
    ];
    expect(await all(client(url, { accounts }).listOperations('calm-sea-1'))).toEqual([]);
  });
});

describe('what is written', () => {
  test('one PATCH carries exactly the fields of the change', async () => {
    const answer = { endpoint: wireCompute('ep-1', { pending_state: 'active' }), operations: [wireOperation('op-1')] };
    const { url, requests } = await serve(() => ({ body: answer }));
    const metrics = recordingMetrics();
    const result = await client(url, { metrics }).updateCompute('calm-sea-1', 'ep-1', {
      minCu: 0.25,
      suspendTimeoutSeconds: 300,
    });
    expect(unwrap(result)).toMatchObject({
      settings: { minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300 },
      state: 'active',
      pendingState: 'active',
      operations: [{ operationId: 'op-1', totalDurationMs: 12, computeId: 'ep-1' }],
    });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      method: 'PATCH',
      url: '/api/v2/projects/calm-sea-1/endpoints/ep-1',
      body: '{"endpoint":{"autoscaling_limit_min_cu":0.25,"suspend_timeout_seconds":300}}',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    });
    const route = 'PATCH /projects/{project_id}/endpoints/{endpoint_id}';
    expect(metrics.values.get(`ebb_api_requests_total{route=${route},code=200}`)).toBe(1);
    expect(metrics.values.get(`ebb_api_request_duration_seconds{route=${route}}`)).toBe(1);
    expect(metrics.values.get('ebb_api_key_valid{account=main}')).toBe(1);
  });

  test('restart has no body, and an answer without operations is accepted', async () => {
    const { url, requests } = await serve(() => ({ body: {} }));
    expect(unwrap(await client(url).restartCompute('calm-sea-1', 'ep-1'))).toEqual({ operations: [] });
    expect(requests[0]).toMatchObject({
      method: 'POST',
      url: '/api/v2/projects/calm-sea-1/endpoints/ep-1/restart',
      body: '',
    });
    expect(requests[0]?.headers).not.toHaveProperty('content-type');
  });

  test('an id that no id can be is refused before anything is sent', async () => {
    const { url, requests } = await serve(() => ({ body: {} }));
    const result = await client(url).restartCompute('calm-sea-1', 'ep-1/../../ep-2');
    expect(errorOf(result)).toMatchObject({ code: 'invalid' });
    expect(requests).toEqual([]);
  });

  test('an answer about another compute is malformed, with an unknown outcome', async () => {
    const { url } = await serve(() => ({ body: { endpoint: wireCompute('ep-2'), operations: [] } }));
    const result = await client(url).updateCompute('calm-sea-1', 'ep-1', { minCu: 1 });
    expect(errorOf(result)).toMatchObject({ code: 'malformed', outcomeUnknown: true });
  });
});
