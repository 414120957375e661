import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Fleet } from '../../src/emulator/fleet.ts';
import { type Call, compute, startTestEmulator, type TestEmulator } from './support.ts';

function project(id: string, account?: string): Fleet['projects'][number] {
  const computes = [compute({ id: `ep-${id}` })];
  return {
    id,
    name: id,
    regionId: 'aws-eu-central-1',
    pgVersion: 17,
    computes,
    ...(account === undefined ? {} : { account }),
  };
}

const FLEET: Fleet = {
  projects: [project('mine'), project('red-1', 'red'), project('red-2', 'red'), project('blue-1', 'blue')],
};

let test: TestEmulator;
beforeEach(async () => {
  test = await startTestEmulator({ fleet: FLEET });
});
afterEach(() => test.emulator.close());

async function newKey(body: object): Promise<string> {
  return (await test.control('POST', '/keys', body)).body.key;
}

function as(key: string, method: string, path: string, body?: unknown): Promise<Call> {
  return test.call(method, path, body, { authorization: `Bearer ${key}` });
}

async function projectIds(key: string): Promise<string[]> {
  const { body } = await as(key, 'GET', '/projects');
  return body.projects.map((one: { id: string }) => one.id);
}

it('an organization gets another plan, and without one all projects; an unknown one is refused', async () => {
  const plans = async () => {
    const read = ['mine', 'red-1', 'blue-1'].map((id) => test.call('GET', `/projects/${id}`));
    return (await Promise.all(read)).map(({ body }) => body.project.owner?.subscription_type);
  };
  const before = await plans();
  const refused = await test.control('POST', '/plan', { plan: 'free', org: 'org-pink' });
  expect([refused.status, refused.body.message]).toEqual([404, 'organization not found']);
  expect(await plans()).toEqual(before);
  await test.control('POST', '/plan', { plan: 'launch', org: 'org-red' });
  expect(await plans()).toEqual([before[0], 'launch_v3', before[2]]);
  await test.control('POST', '/plan', { plan: 'free' });
  expect(await plans()).toEqual(['free_v3', 'free_v3', 'free_v3']);
});

describe('what a key opens', () => {
  it('is, for a personal key, the personal projects and those of the organizations of its user', async () => {
    expect(await projectIds(test.emulator.apiKey)).toEqual(['blue-1', 'mine', 'red-1', 'red-2']);
    await test.control('POST', '/members', { org: 'org-blue', role: 'none' });
    expect(await projectIds(test.emulator.apiKey)).toEqual(['mine', 'red-1', 'red-2']);
    expect((await test.call('GET', '/projects/blue-1/endpoints')).status).toBe(404);
  });

  it('is, for an organization key, the projects of its organization', async () => {
    const key = await newKey({ kind: 'organization', org: 'org-red' });
    expect(await projectIds(key)).toEqual(['red-1', 'red-2']);
    expect((await as(key, 'GET', '/projects/mine')).status).toBe(404);
    expect((await as(key, 'GET', '/api_keys')).status).toBe(403);
    const created = await as(key, 'POST', '/projects', { project: {} });
    expect(created.body.project.org_id).toBe('org-red');
    expect((await as(key, 'POST', '/projects', { project: { org_id: 'org-blue' } })).status).toBe(403);
  });

  it('is, for a project-scoped key, its project, which it cannot delete', async () => {
    const { body } = await test.call('POST', '/organizations/org-red/api_keys', {
      key_name: 'one',
      project_id: 'red-1',
    });
    expect(body).toMatchObject({ name: 'one', project_id: 'red-1', key: expect.stringMatching(/^napi_[a-z0-9]{64}$/) });
    expect(await projectIds(body.key)).toEqual(['red-1']);
    const change = { endpoint: { suspend_timeout_seconds: 60 } };
    expect((await as(body.key, 'PATCH', '/projects/red-1/endpoints/ep-red-1', change)).status).toBe(200);
    expect((await as(body.key, 'PATCH', '/projects/red-2/endpoints/ep-red-2', change)).status).toBe(404);
    expect((await as(body.key, 'DELETE', '/projects/red-1')).status).toBe(403);
    expect((await as(body.key, 'POST', '/projects', { project: {} })).status).toBe(403);
    expect((await as(body.key, 'GET', '/organizations/org-red/api_keys')).status).toBe(403);
  });
});

describe('a key that has lost its ground', () => {
  it('gets 401 from the moment it is revoked, and keeps its name off the list', async () => {
    const { body } = await test.call('POST', '/api_keys', { key_name: 'short-lived' });
    expect((await as(body.key, 'GET', '/projects')).status).toBe(200);
    const revoked = await test.call('DELETE', `/api_keys/${body.id}`);
    expect(revoked.body).toMatchObject({ id: body.id, name: 'short-lived', revoked: true });
    expect((await as(body.key, 'GET', '/projects')).status).toBe(401);
    expect((await test.call('DELETE', `/api_keys/${body.id}`)).status).toBe(404);
    expect((await test.call('GET', '/api_keys')).body.map((one: { name: string }) => one.name)).toEqual(['first']);
  });

  it('gets 401 when its project leaves the organization, and when the project is deleted', async () => {
    const leaving = await newKey({ kind: 'project', project: 'red-1' });
    const deleted = await newKey({ kind: 'project', project: 'red-2' });
    await test.control('POST', '/projects/red-1/move', { org: null });
    await test.call('DELETE', '/projects/red-2');
    expect((await as(leaving, 'GET', '/projects/red-1')).status).toBe(401);
    expect((await as(deleted, 'GET', '/projects/red-2')).status).toBe(401);
  });
});

describe('who may make and revoke keys of an organization', () => {
  it('is a member for a project-scoped key, an administrator for the rest', async () => {
    await test.control('POST', '/members', { org: 'org-red', role: 'member' });
    const scoped = await test.call('POST', '/organizations/org-red/api_keys', { key_name: 'a', project_id: 'red-1' });
    expect(scoped.status).toBe(200);
    expect((await test.call('POST', '/organizations/org-red/api_keys', { key_name: 'b' })).status).toBe(403);
    expect((await test.call('DELETE', `/organizations/org-red/api_keys/${scoped.body.id}`)).status).toBe(403);
    await test.control('POST', '/members', { org: 'org-red', role: 'admin' });
    expect((await test.call('POST', '/organizations/org-red/api_keys', { key_name: 'b' })).status).toBe(200);
    expect((await test.call('DELETE', `/organizations/org-red/api_keys/${scoped.body.id}`)).status).toBe(200);
  });

  it('is nobody outside, and for no project of another organization', async () => {
    await test.control('POST', '/members', { org: 'org-blue', role: 'none' });
    expect((await test.call('GET', '/organizations/org-blue/api_keys')).status).toBe(403);
    expect((await test.call('GET', '/organizations/org-none/api_keys')).status).toBe(404);
    const foreign = { key_name: 'x', project_id: 'blue-1' };
    expect((await test.call('POST', '/organizations/org-red/api_keys', foreign)).status).toBe(404);
    expect((await test.call('POST', '/organizations/org-red/api_keys', {})).status).toBe(400);
  });

  it('lists keys with their last use and never with their secret', async () => {
    const key = await newKey({ kind: 'organization', org: 'org-red', name: 'ci' });
    await as(key, 'GET', '/projects');
    const { body } = await test.call('GET', '/organizations/org-red/api_keys');
    expect(body).toMatchObject([
      { name: 'ci', last_used_at: '2026-11-23T09:00:00Z', last_used_from_addr: '127.0.0.1' },
    ]);
    expect(JSON.stringify(body)).not.toContain(key);
  });
});
