import { afterEach, expect, it } from 'vitest';
import { generateFleet } from '../../src/emulator/generate-fleet.ts';
import { compute, fleetOf, startTestEmulator, type TestEmulator } from './support.ts';

let test: TestEmulator | undefined;
afterEach(() => test?.emulator.close());

/** Reads pages until there is no cursor or no item; `between` happens after each page. */
async function readAll(
  path: string,
  field: string,
  limit: number,
  between = async (): Promise<void> => {},
): Promise<string[]> {
  if (test === undefined) throw new Error('not started');
  const ids: string[] = [];
  let cursor: string | undefined;
  for (;;) {
    const suffix = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { body } = await test.call('GET', `${path}?limit=${limit}${suffix}`);
    if (body[field].length === 0) {
      expect(body).not.toHaveProperty('pagination');
      return ids;
    }
    expect(body[field].length).toBeLessThanOrEqual(limit);
    ids.push(...body[field].map((one: { id: string }) => one.id));
    cursor = body.pagination.cursor;
    await between();
  }
}

it('pages through projects by id, with a cursor on every page that has items', async () => {
  test = await startTestEmulator({ fleet: generateFleet({ projects: 57, computesPerProject: 1, seed: 3 }) });
  const all = await readAll('/projects', 'projects', 400);
  expect(all).toHaveLength(57);
  expect(all).toEqual([...all].sort());
  for (const limit of [1, 10, 19, 57]) expect(await readAll('/projects', 'projects', limit)).toEqual(all);
  expect((await test.call('GET', '/projects')).body.projects).toHaveLength(10);
  expect(
    (await test.call('GET', '/projects?search=shop-0000&limit=400')).body.projects.map(
      (one: { name: string }) => one.name,
    ),
  ).toEqual(['shop-00004', 'shop-00009']);
});

it('neither repeats nor misses a project when others come and go between two pages', async () => {
  test = await startTestEmulator({ fleet: generateFleet({ projects: 20, computesPerProject: 1, seed: 3 }) });
  const emulator = test;
  const before = await readAll('/projects', 'projects', 400);
  const [first, ...rest] = before;
  let gone = false;
  const seen = await readAll('/projects', 'projects', 3, async () => {
    await emulator.call('POST', '/projects', { project: {} });
    if (!gone) await emulator.call('DELETE', `/projects/${first}`);
    gone = true;
  });
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.filter((id) => rest.includes(id))).toEqual(rest);
});

it('pages through operations newest first, exact although new ones arrive between two pages', async () => {
  test = await startTestEmulator({ fleet: fleetOf(compute({ id: 'ep-web' })), operationTimeMs: 0 });
  const emulator = test;
  const toggle = async (): Promise<void> => {
    for (const verb of ['start', 'suspend']) {
      await emulator.call('POST', `/projects/shop/endpoints/ep-web/${verb}`);
      // Several operations within one millisecond still have an order.
      await emulator.control('GET', '/state');
    }
  };
  for (let round = 0; round < 10; round += 1) await toggle();
  const all = await readAll('/projects/shop/operations', 'operations', 1000);
  expect(all).toHaveLength(20);
  expect(await readAll('/projects/shop/operations', 'operations', 3, toggle)).toEqual(all);
  const { body } = await test.call('GET', '/projects/shop/operations?limit=2');
  expect(body.pagination.cursor).toMatch(/^2026-11-23T09:00:00\.\d{6}Z$/);
  expect(body.operations[0].created_at).toBe('2026-11-23T09:00:00Z');
});

it('pages through branches', async () => {
  test = await startTestEmulator({ fleet: generateFleet({ projects: 1, computesPerProject: 9, seed: 1 }) });
  const path = '/projects/web-project-00001/branches';
  const first = (await test.call('GET', `${path}?limit=3`)).body;
  const second = (await test.call('GET', `${path}?limit=3&cursor=${first.pagination.next}`)).body;
  expect([...first.branches, ...second.branches].map(({ name }) => name)).toEqual([
    'main',
    'preview/1',
    'preview/2',
    'preview/3',
    'preview/4',
  ]);
  expect(second.pagination).not.toHaveProperty('next');
});

it.each([
  '/projects?limit=0',
  '/projects?limit=401',
  '/projects?limit=x',
  '/projects/shop/operations?limit=1001',
  '/projects/shop/operations?cursor=x',
])('refuses %s with 400', async (path) => {
  test = await startTestEmulator({ fleet: fleetOf(compute({ id: 'ep-web' })) });
  expect((await test.call('GET', path)).status).toBe(400);
});
