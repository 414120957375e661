import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { controlApiOver } from '../../src/adapters/control-api/control-api.ts';

import { LIST_LIMITS, pagesOf } from '../../src/adapters/control-api/routes.ts';
import type { Project } from '../../src/ports/control-api.ts';
import { KEY, wireOperation, wireProject } from './samples.ts';
import { all, client, serve } from './support.ts';

const endless = (why: string) =>
  ({ ok: false, error: { code: 'malformed', route: 'GET /things', message: why } }) as const;

/** A list that always has another page, each of so many items. */
function endlessList(itemsPerPage: number, time = { nowMs: 0, pageMs: 0 }) {
  let fetched = 0;
  const fetchPage = async () => {
    fetched += 1;
    time.nowMs += time.pageMs;
    return { ok: true, value: { items: new Array<string>(itemsPerPage).fill('same'), cursor: `${fetched}` } } as const;
  };
  return { fetchPage, fetched: () => fetched, endless, clock: { monotonicMs: () => time.nowMs } };
}

describe('a list', () => {
  it.each([
    ['pages', 1, 0, 300, 'more than 300 pages'],
    ['items', 1_000, 0, 100, 'more than 100000 items'],
    ['time', 1, 50_000, 6, 'more pages after 300 s'],
  ])('without an end ends with an error at the limit of its %s', async (_, itemsPerPage, pageMs, pages, message) => {
    const list = endlessList(itemsPerPage, { nowMs: 0, pageMs });
    const results = await all(pagesOf(list));
    expect(results.at(-1)).toMatchObject({ ok: false, error: { message } });
    expect([list.fetched(), results.length]).toEqual([pages, pages + 1]);
  });

  it('as long as the limits allow has an end', async () => {
    const list = endlessList(1);
    const fetchPage = async () => {
      const { value } = await list.fetchPage();
      const cursor = list.fetched() < LIST_LIMITS.pages ? value.cursor : undefined;
      return { ok: true as const, value: { ...value, cursor } };
    };
    const results = await all(pagesOf({ ...list, fetchPage }));
    expect([results.length, results.every(({ ok }) => ok)]).toEqual([LIST_LIMITS.pages, true]);
  });
});

describe('every list of the control API', () => {
  const lists = {
    projects: ['GET /projects', { projects: [wireProject('p-1')] }],
    branches: [
      'GET /projects/{project_id}/branches',
      { branches: [{ id: 'br-1', name: 'main', default: true, protected: false }] },
    ],
    operations: ['GET /projects/{project_id}/operations', { operations: [wireOperation('o-1')] }],
  } as const;

  it.each(Object.entries(lists))('is bounded, and the error names the route: %s', async (name, [route, body]) => {
    let page = 0;
    const call = async () => {
      page += 1;
      return { ok: true as const, value: { ...body, pagination: { cursor: `c-${page}`, next: `c-${page}` } } };
    };
    const api = controlApiOver({ call, accounts: [{ name: 'main', key: () => KEY }], clock: systemClock() });
    const pages: AsyncIterable<{ ok: boolean }> = {
      projects: () => api.listProjects(),
      branches: () => api.listBranches('p-1'),
      operations: () => api.listOperations('calm-sea-1'),
    }[name as keyof typeof lists]();
    expect((await all(pages)).at(-1)).toMatchObject({ ok: false, error: { route, code: 'malformed' } });
    expect(page).toBe(LIST_LIMITS.pages);
  });

  it('tolerates what comes on several pages', async () => {
    const { url } = await serve(({ url: path }) => {
      const cursor = /cursor=(\w+)/.exec(path)?.[1];
      const more = cursor === undefined ? { pagination: { cursor: 'next' } } : {};
      return { body: { projects: [wireProject('p-1'), wireProject(cursor ?? 'first')], ...more } };
    });
    const ids = (await all(client(url).listProjects())).flatMap((page) =>
      (page.ok ? page.value : []).map((one) => one.projectId),
    );
    expect(ids).toEqual(['p-1', 'first', 'next']);
  });
});

it('each page of projects is shown when it arrives, with the time of its own request', async () => {
  const time = { ms: 0 };
  const shown: [string[], number][] = [];
  const call = async () => {
    time.ms += 10_000;
    const projects = [wireProject(`p-${time.ms}`)];
    return { ok: true as const, value: { projects, pagination: time.ms < 30_000 ? { cursor: `${time.ms}` } : {} } };
  };
  const clock = { ...systemClock(), monotonicMs: () => time.ms };
  const api = controlApiOver({ call, accounts: [{ name: 'main', key: () => KEY }], clock });
  const onPage = (page: readonly Project[], askedAtMonotonicMs: number) =>
    shown.push([page.map(({ projectId }) => projectId), askedAtMonotonicMs]);
  await all(api.listProjects({ onPage }));
  expect(shown).toEqual([
    [['p-10000'], 0],
    [['p-20000'], 10_000],
    [['p-30000'], 20_000],
  ]);
});
