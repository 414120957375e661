import { expect, it } from 'vitest';
import { createFleet, DOUBTED } from '../../src/app/fleet/fleet.ts';
import { createListWatch, type ListWatchDeps } from '../../src/app/fleet/list-watch.ts';
import type { ListOptions, Project } from '../../src/ports/control-api.ts';
import { aCompute } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const START = 1_790_000_000_000;
const NEVER = new AbortController().signal;

/** A daemon that read some projects a minute ago, in an account whose list shows changes. */
function aDaemon(ids: readonly string[] = ['p']) {
  const time = { ms: START };
  const clock = {
    now: () => time.ms,
    monotonicMs: () => time.ms,
    async wait(ms: number) {
      time.ms += ms;
    },
  };
  const fleet = createFleet({ clock } as never);
  fleet.listShowsChanges.set('a', true);
  const projects = ids.map((projectId) => ({ account: 'a', projectId, name: 'p', regionId: 'r', updatedAtMs: 0 }));
  for (const project of projects) {
    fleet.list(project);
    fleet.cache({ project, computes: [aCompute()], unreadable: [], readAtMs: START, readAtMonotonicMs: START });
  }
  time.ms += 60_000;
  const watch = (listProjects: (options: ListOptions) => AsyncIterable<unknown>) => {
    const outages = { up() {}, down() {}, beganInOutage: () => false };
    const store = { records: async () => new Map() };
    const api = { accountStatus: () => [], listProjects };
    return createListWatch({
      fleet,
      clock,
      outages,
      store,
      api,
      telemetry: { log: memoryLog() },
    } as unknown as ListWatchDeps);
  };
  return { time, fleet, projects, watch };
}

it('a list that is awaited for an account is of this account alone, and does not wait for those of others', async () => {
  const { watch } = aDaemon();
  const asked: (string | undefined)[] = [];
  const list = watch(async function* ({ account }) {
    asked.push(account);
    if (account === 'b') await new Promise(() => {});
    yield { ok: true, value: [{ account, projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 }] };
  });
  void list.ensure(1_000, { signal: NEVER, account: 'b' });
  for (const _twice of [1, 2]) await list.ensure(1_000, { signal: NEVER, account: 'a' });
  expect(asked).toEqual(['b', 'a']);
});

it('a list that could not be had in whole is not asked for again sooner than one that could, unless it was stopped', async () => {
  const { time, projects, watch } = aDaemon();
  let asked = 0;
  const list = watch(async function* ({ account }) {
    asked += 1;
    yield { ok: true, value: projects };
    yield { ok: false, error: { account, code: 'unavailable', status: 500, route: 'GET /projects', message: 'no' } };
  });
  const askedWith = async (signal: AbortSignal) => {
    await list.ensure(1_000, { signal, account: 'a' });
    return asked;
  };
  expect([await askedWith(AbortSignal.abort()), await askedWith(NEVER), await askedWith(NEVER)]).toEqual([1, 2, 2]);
  time.ms += 1_001;
  expect(await askedWith(NEVER)).toBe(3);
});

/** A list of which only one page has arrived, with these projects. */
function firstPage(projects: () => Project[], askedAtMonotonicMs: () => number) {
  return async function* ({ onPage }: ListOptions) {
    onPage?.(projects(), askedAtMonotonicMs());
    yield await new Promise<never>(() => {});
  };
}

it('a page confirms its projects by its own request, before the list is complete', async () => {
  const { time, fleet, projects, watch } = aDaemon();
  const list = watch(
    firstPage(
      () => projects,
      () => time.ms - 20_000,
    ),
  );
  await list.ensure(1_000, { signal: NEVER, account: 'a' }, 'p');
  expect(fleet.confirmedAgeMs('p')).toBe(20_000);
  expect(await list.isConfirmed('p', 1_000, { signal: NEVER, account: 'a' })).toBe(true);
});

it('a project that a page shows changed is not confirmed, and does not wait for the rest of the list', async () => {
  const { time, fleet, projects, watch } = aDaemon();
  fleet.confirm('p', time.ms - 30_000);
  const changed = () => projects.map((project) => ({ ...project, updatedAtMs: time.ms }));
  const list = watch(firstPage(changed, () => time.ms));
  await list.ensure(1_000, { signal: NEVER, account: 'a' }, 'p');
  expect(await list.isConfirmed('p', 1_000, { signal: NEVER, account: 'a' })).toBe(false);
});

it.each([
  ['raise', 20_000],
  ['lowering', 0],
] as const)(
  'the next page waits while twenty projects of the most urgent priority can be changed (the others: %s)',
  async (priority, ms) => {
    const ids = Array.from({ length: 20 }, (_, index) => `p-${index}`);
    const { time, fleet, projects, watch } = aDaemon(ids);
    for (const [index, id] of ids.entries()) fleet.waitingAtBoundary.set(id, index === 0 ? 'raise' : priority);
    let waitedMs = 0;
    const list = watch(async function* ({ onPage, beforeNextPage }) {
      onPage?.(projects, time.ms);
      const arrivedMs = time.ms;
      await beforeNextPage?.();
      waitedMs = time.ms - arrivedMs;
      yield { ok: true, value: projects };
    });
    await list.ensure(1_000, { signal: NEVER, account: 'a' });
    // What a page confirms counts for 25 s, of which 5 s are left for the next page.
    expect(waitedMs).toBe(ms && 20_250);
  },
);

it('the next page does not wait while another project prepares for its boundary', async () => {
  const ids = Array.from({ length: 21 }, (_, index) => `p-${index}`);
  const { time, fleet, projects, watch } = aDaemon(ids);
  for (const id of ids.slice(0, 20)) fleet.waitingAtBoundary.set(id, 'lowering');
  const page = projects.slice(0, 20);
  const arrivedMs = time.ms;
  const list = watch(async function* ({ onPage, beforeNextPage }) {
    onPage?.(page, time.ms);
    await beforeNextPage?.();
    onPage?.(projects.slice(20), time.ms);
    yield { ok: true, value: projects };
  });
  await list.ensure(1_000, { signal: NEVER, account: 'a' }, 'p-20');
  expect(time.ms).toBe(arrivedMs);
});

it('a project whose page came a moment ago does not wait for the rest of the list', async () => {
  const { time, projects, watch } = aDaemon();
  const list = watch(
    firstPage(
      () => projects,
      () => time.ms,
    ),
  );
  for (const _twice of [1, 2]) await list.ensure(1_000, { signal: NEVER, account: 'a' }, 'p');
});

it('an account that shows a project of another one neither confirms it nor doubts it', async () => {
  const { time, fleet, projects, watch } = aDaemon();
  fleet.confirm('p', time.ms - 5_000);
  const list = watch(async function* ({ onPage }) {
    onPage?.(
      projects.map((project) => ({ ...project, account: 'b', updatedAtMs: time.ms })),
      time.ms,
    );
    yield { ok: true, value: [] };
  });
  await list.ensure(1_000, { signal: NEVER, account: 'b' }, 'p');
  expect(fleet.confirmedAgeMs('p')).toBe(5_000);
});

it('a list that lacks our own change confirms nothing, from its first page on', async () => {
  const { time, fleet, projects, watch } = aDaemon();
  fleet.changedAtMs.set('p', time.ms - 10_000);
  const list = watch(
    firstPage(
      () => projects,
      () => time.ms,
    ),
  );
  await list.ensure(1_000, { signal: NEVER, account: 'a' }, 'p');
  expect([fleet.listShowsChanges.get('a'), fleet.isFresh('p')]).toEqual([false, false]);
});

it('a doubt is not ended by a list that was requested before it', () => {
  const { time, fleet } = aDaemon();
  fleet.confirm('p', DOUBTED);
  fleet.confirm('p', time.ms - 1);
  expect(fleet.isFresh('p')).toBe(false);
  time.ms += 1;
  fleet.confirm('p', time.ms);
  expect(fleet.isFresh('p')).toBe(true);
});

it('a service whose pages come too late to confirm anything is not asked for lists again and again', async () => {
  const { time, projects, watch } = aDaemon();
  let asked = 0;
  const list = watch(async function* ({ onPage }) {
    asked += 1;
    const askedMs = time.ms;
    time.ms += 28_000;
    onPage?.(projects, askedMs);
    yield { ok: true, value: projects };
  });
  await list.ensure(1_000, { signal: NEVER, account: 'a' }, 'p');
  expect(await list.isConfirmed('p', 1_000, { signal: NEVER, account: 'a' })).toBe(false);
  expect(asked).toBeLessThan(4);
});
