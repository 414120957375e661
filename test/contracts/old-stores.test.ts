import { readFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { embeddedFolder } from '../support/embedded-folder.ts';
import { openTestEngine } from '../support/engines.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

/** What a daemon of 0.1.0 (commit 3aca383) stored after it had changed a fleet, with a hold and a freeze of ninety days. */
const FOLDER = new URL('stores-of-0.1.0/', import.meta.url);
const GROUP = 'pinned';
const THEN_MS = Date.parse('2026-11-22T03:00:00Z');
const PROJECTS = ['api-project-00002', 'dev-project-00003', 'shop-project-00004', 'web-project-00001'];

async function openOldStore(url: string) {
  const { engine, log } = await openTestEngine(url, GROUP);
  onTestFinished(() => engine.close());
  if (engine.kind === 'redis') {
    const dump: Record<string, string> = JSON.parse(await readFile(new URL('redis.json', FOLDER), 'utf8'));
    for (const [key, value] of Object.entries(dump))
      await engine.commands.restore(key, 0, Buffer.from(value, 'base64'));
  } else {
    await engine.pool.query(await readFile(new URL('postgres.sql', FOLDER), 'utf8'));
  }
  return createStore({ engine, log });
}

async function expectEverything(url: string): Promise<void> {
  const store = await openOldStore(url);
  expect((await store.projectIds()).toSorted()).toEqual(PROJECTS);
  const records = await Promise.all(PROJECTS.map((projectId) => store.records(projectId)));
  const baselines = records.flatMap((ofProject) => [...ofProject].map(([id, { baseline }]) => [id, baseline]));
  expect(Object.fromEntries(baselines)).toMatchSnapshot('baselines');
  const applied = records.flatMap((ofProject) => [...ofProject].map(([id, { lastApplied }]) => [id, lastApplied]));
  expect(Object.fromEntries(applied)).toMatchSnapshot('last applied');

  const [hold] = await store.holds(THEN_MS);
  expect(hold).toMatchObject({ owner: 'ann', reason: 'load test', computeId: 'ep-00001-1' });
  const [freeze] = await store.freezes(THEN_MS);
  expect(freeze).toMatchObject({ owner: 'ann', reason: 'migration', select: { projects: ['api-*'] } });
  const history = await store.history({ computeId: 'ep-00001-1', limit: 100 });
  expect(history.slice(0, 2).map(({ kind }) => kind)).toEqual(['write', 'hold']);
  const codes = (await store.history({ limit: 100 })).flatMap(({ reasons }) => reasons.map(({ code }) => code));
  expect(codes, 'stored as first_sight').toContain('newly_discovered');
  expect(codes).not.toContain('first_sight');
  expect((await store.generation())?.setHash).toMatch(/^5c322c70/);
}

describeWith('redis-server', 'a store of 0.1.0 on Redis', () => {
  it('opens with every baseline, hold, freeze and history entry', async () => {
    const server = await startRedisServer();
    onTestFinished(() => server.close());
    await expectEverything(server.url);
  });
});

describeWith('postgres', 'a store of 0.1.0 on Postgres', () => {
  it('opens with every baseline, hold, freeze and history entry', async () => {
    const server = await startPostgresServer();
    onTestFinished(() => server.close());
    await expectEverything(server.url);
  });
});

describe('a store of 0.1.0 on the embedded engine', () => {
  it('opens with every baseline, hold, freeze and history entry', async () => {
    const folder = await embeddedFolder();
    onTestFinished(() => folder.remove());
    await expectEverything(`embedded:${folder.path}`);
  });
});
