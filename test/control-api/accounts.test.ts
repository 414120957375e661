import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createKeyGate, DEFAULT_KEY_PROBES } from '../../src/adapters/control-api/accounts.ts';
import { keyFromFile, keysFromFolder } from '../../src/adapters/control-api/key-files.ts';
import { memoryLog } from '../support/memory-log.ts';
import { recordingMetrics, wireCompute, wireOperation, wireProject } from './samples.ts';
import { all, client, errorOf, serve, unwrap } from './support.ts';

const PROJECT = { account: 'main', projectId: 'calm-sea-1', name: 'shop' };
const HOUR_MS = 3_600_000;

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'ebb-keys-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A service that accepts one key; which one may change. */
async function serviceWith(valid: { key: string }) {
  return serve(({ headers, method }) => {
    if (headers.authorization !== `Bearer ${valid.key}`) return { status: 401, body: { message: 'no' } };
    return method === 'GET'
      ? { body: { endpoints: [] } }
      : { body: { endpoint: wireCompute('ep-1'), operations: [wireOperation('op-1')] } };
  });
}

describe('a refused key', () => {
  test('stops the calls of its account alone, says so once, and is known to be refused', async () => {
    const { url, requests } = await serviceWith({ key: 'good' });
    const metrics = recordingMetrics();
    const log = memoryLog();
    const accounts = [
      { name: 'main', key: () => 'bad' },
      { name: 'other', key: () => 'good' },
    ];
    const api = client(url, { accounts, metrics, log, keyProbes: { firstMs: HOUR_MS, longestMs: HOUR_MS } });
    for (let call = 0; call < 3; call += 1) {
      expect(errorOf(await api.listComputes(PROJECT))).toMatchObject({ code: 'unauthorised', account: 'main' });
    }
    expect(requests).toHaveLength(1);
    unwrap(await api.listComputes({ ...PROJECT, account: 'other' }));
    expect(api.accountStatus()).toEqual([
      {
        ...{ account: 'main', key: 'refused', message: expect.stringContaining('account main; replace it') },
        keyTrouble: { state: 'refused' },
      },
      { account: 'other', key: 'valid' },
    ]);
    expect(metrics.values.get('ebb_api_key_valid{account=main}')).toBe(0);
    expect(metrics.values.get('ebb_api_key_valid{account=other}')).toBe(1);
    expect(log.lines.filter((line) => line.level === 'error')).toHaveLength(1);
  });

  test('is tried again after a wait, and once it is accepted everything goes on', async () => {
    const valid = { key: 'new' };
    const { url } = await serviceWith(valid);
    const api = client(url, {
      accounts: [{ name: 'main', key: () => 'old' }],
      keyProbes: { firstMs: 1, longestMs: 5 },
    });
    expect((await api.listComputes(PROJECT)).ok).toBe(false);
    expect(api.accountStatus()).toMatchObject([{ key: 'refused', keyTrouble: { state: 'refused' } }]);
    valid.key = 'old';
    await expect.poll(async () => (await api.listComputes(PROJECT)).ok).toBe(true);
    const keyTrouble = { state: 'refused', endedAgoMs: expect.any(Number) };
    expect(api.accountStatus()).toEqual([{ account: 'main', key: 'valid', keyTrouble }]);
  });

  test('is probed by one request at a time, each after twice the wait', () => {
    const gate = createKeyGate({ firstMs: 100, longestMs: 250 });
    gate.refused('a', 'k', 1_000);
    gate.refused('a', 'k', 1_001);
    const probes: number[] = [];
    for (let nowMs = 1_000; nowMs < 2_200; nowMs += 10) {
      if (!gate.mayPass('a', 'k', nowMs)) continue;
      expect(gate.mayPass('a', 'k', nowMs)).toBe(false);
      probes.push(nowMs);
      gate.refused('a', 'k', nowMs);
    }
    expect(probes).toEqual([1_100, 1_300, 1_550, 1_800, 2_050]);
    expect(gate.mayPass('a', 'another', 2_060)).toBe(true);
    expect(gate.mayPass('b', 'k', 2_060)).toBe(true);
    gate.accepted('a');
    expect(gate.mayPass('a', 'k', 2_061)).toBe(true);
  });

  test('is probed once a minute at least, and less often only where many keys are refused, every five minutes at least', () => {
    const waits = (keys: number) => {
      const gate = createKeyGate(DEFAULT_KEY_PROBES);
      const slots = Array.from({ length: keys }, (_, index) => `main/${index}`);
      let nowMs = 0;
      let waitMs = 0;
      for (let refusal = 0; refusal < 12; refusal += 1) {
        for (const slot of slots) gate.refused(slot, 'k', nowMs);
        const sinceMs = nowMs;
        while (!gate.mayPass('main/0', 'k', nowMs)) nowMs += 1_000;
        for (const slot of slots) gate.mayPass(slot, 'k', nowMs);
        waitMs = nowMs - sinceMs;
      }
      return waitMs;
    };
    expect(waits(1)).toBe(60_000);
    expect(waits(61)).toBe(60_000);
    expect(waits(301)).toBe(300_000);
    expect(waits(1_000)).toBe(300_000);
  });

  test('that was replaced meanwhile is not noticed: the same write goes out under the new one', async () => {
    const { url, requests } = await serviceWith({ key: 'new' });
    const key = ({ refusedKey }: { refusedKey?: string }) => (refusedKey === 'old' ? 'new' : 'old');
    const api = client(url, { accounts: [{ name: 'main', key }] });
    unwrap(await api.updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }));
    expect(requests.map((request) => request.headers.authorization)).toEqual(['Bearer old', 'Bearer new']);
  });
});

describe('a key file', () => {
  test('is read again when it changes, in place or by another moved over it', async () => {
    const path = join(await folder(), 'key');
    await writeFile(path, 'first\n');
    const key = keyFromFile(path);
    expect(await key({})).toBe('first');
    await writeFile(path, 'another');
    expect(await key({})).toBe('another');
    await writeFile(`${path}.new`, 'third');
    await rename(`${path}.new`, path);
    expect(await key({})).toBe('third');
  });

  test('that is gone says which and why; nothing is sent', async () => {
    const { url, requests } = await serviceWith({ key: 'good' });
    const path = join(await folder(), 'key');
    const api = client(url, { accounts: [{ name: 'main', key: keyFromFile(path) }] });
    const { code, message } = errorOf(await api.listComputes(PROJECT));
    expect(code).toBe('unauthorised');
    expect(message).toContain('the key file key cannot be read (ENOENT)');
    expect(requests).toEqual([]);
  });

  test('that is gone for a while is trouble of its account until a key is there again', async () => {
    const { url } = await serviceWith({ key: 'good' });
    const path = join(await folder(), 'key');
    const metrics = recordingMetrics();
    const log = memoryLog();
    const api = client(url, { accounts: [{ name: 'main', key: keyFromFile(path) }], metrics, log });
    await api.listComputes(PROJECT);
    await api.listComputes(PROJECT);
    const message = 'account main has no API key to send: the key file key cannot be read (ENOENT); put it there';
    expect(api.accountStatus()).toEqual([
      { account: 'main', key: 'missing', message, keyTrouble: { state: 'missing' } },
    ]);
    expect(metrics.values.get('ebb_api_key_valid{account=main}')).toBe(0);
    await writeFile(path, 'good');
    unwrap(await api.listComputes(PROJECT));
    const keyTrouble = { state: 'missing', endedAgoMs: expect.any(Number) };
    expect(api.accountStatus()).toEqual([{ account: 'main', key: 'valid', keyTrouble }]);
    expect(metrics.values.get('ebb_api_key_valid{account=main}')).toBe(1);
    expect(log.lines.map((line) => line.level)).toEqual(['error', 'info']);
    // A key that was read may be refused.
    expect(log.lines.at(-1)?.message).toBe('the API key of account main can be read again; no request has used it yet');
  });

  test('a rotation is picked up without a restart', async () => {
    const valid = { key: 'first' };
    const { url } = await serviceWith(valid);
    const path = join(await folder(), 'key');
    await writeFile(path, 'first', { mode: 0o600 });
    const api = client(url, {
      accounts: [{ name: 'main', key: keyFromFile(path) }],
      keyProbes: { firstMs: HOUR_MS, longestMs: HOUR_MS },
    });
    unwrap(await api.listComputes(PROJECT));
    valid.key = 'second';
    expect((await api.listComputes(PROJECT)).ok).toBe(false);
    await writeFile(path, 'second');
    unwrap(await api.listComputes(PROJECT));
  });
});

describe('a folder of keys', () => {
  async function keysFor(...projects: string[]) {
    const path = await folder();
    for (const project of projects) await writeFile(join(path, project), `key-of-${project}\n`);
    await mkdir(join(path, '..data'));
    await writeFile(join(path, 'README.md'), 'no project');
    return { path, account: { name: 'main', ...keysFromFolder(path) } };
  }

  test('shows each project under its own key, where a scoped key may list projects', async () => {
    const { url, requests } = await serve(({ headers }) => {
      const id = headers.authorization?.replace('Bearer key-of-', '') ?? '';
      return { body: { projects: [wireProject(id)] } };
    });
    const { account } = await keysFor('p-1', 'p-2');
    const pages = await all(client(url, { accounts: [account] }).listProjects());
    expect(pages.flatMap((page) => unwrap(page).map((project) => project.name))).toEqual([
      'name of p-1',
      'name of p-2',
    ]);
    expect(requests).toHaveLength(2);
  });

  test('shows projects by their computes where a scoped key may not list, and does not ask again', async () => {
    const { url, requests } = await serve(({ url: path }) =>
      path.includes('endpoints')
        ? { body: { endpoints: [wireCompute('ep-1', { project_id: path.split('/')[4] })] } }
        : { status: 403, body: { message: 'not with a project-scoped key' } },
    );
    const { account } = await keysFor('p-1', 'p-2');
    const pages = await all(client(url, { accounts: [account] }).listProjects());
    expect(pages.flatMap((page) => unwrap(page))).toMatchObject([
      { projectId: 'p-1', name: 'p-1', regionId: 'aws-eu-central-1', updatedAtMs: Date.parse('2026-01-02T03:04:05Z') },
      { projectId: 'p-2' },
    ]);
    expect(requests.filter((request) => !request.url.includes('endpoints'))).toHaveLength(1);
  });

  test('keeps the names that a list has shown while the list is refused, which is tried again after a minute', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    let isRefused = false;
    const { url, requests } = await serve(({ url: path }) => {
      if (path.includes('endpoints')) return { body: { endpoints: [wireCompute('ep-1', { project_id: 'p-1' })] } };
      return isRefused ? { status: 403, body: { message: 'busy' } } : { body: { projects: [wireProject('p-1')] } };
    });
    const { account } = await keysFor('p-1');
    const api = client(url, { accounts: [account] });
    const list = async () => (await all(api.listProjects())).flatMap((page) => unwrap(page))[0];
    const isAsked = () => requests.at(-1)?.url.includes('endpoints') === false;
    const known = await list();
    isRefused = true;
    expect(await list()).toEqual({ ...known, regionId: expect.any(String), updatedAtMs: expect.any(Number) });
    isRefused = false;
    expect([(await list())?.name, isAsked()]).toEqual(['name of p-1', false]);
    vi.advanceTimersByTime(60_000);
    expect([await list(), isAsked()]).toEqual([known, true]);
  });

  test('one refused key leaves the others alone', async () => {
    const { url } = await serve(({ headers }) =>
      headers.authorization === 'Bearer key-of-p-1' ? { status: 401 } : { body: { projects: [wireProject('p-2')] } },
    );
    const { account } = await keysFor('p-1', 'p-2');
    const api = client(url, { accounts: [account], keyProbes: { firstMs: HOUR_MS, longestMs: HOUR_MS } });
    const [first, second] = await all(api.listProjects());
    expect(first).toMatchObject({ ok: true, value: [{ projectId: 'p-2' }] });
    expect(second).toMatchObject({ ok: false, error: { code: 'unauthorised' } });
    expect(api.accountStatus()).toMatchObject([{ key: 'refused', message: expect.stringContaining('for p-1;') }]);
  });

  test('a refused key that is taken away is no trouble any more', async () => {
    const { url } = await serve(({ headers }) =>
      headers.authorization === 'Bearer key-of-p-1' ? { status: 401 } : { body: { projects: [wireProject('p-2')] } },
    );
    const { path, account } = await keysFor('p-1', 'p-2');
    const api = client(url, { accounts: [account], keyProbes: { firstMs: HOUR_MS, longestMs: HOUR_MS } });
    await all(api.listProjects());
    await rm(join(path, 'p-1'));
    expect(errorOf(await api.listComputes({ ...PROJECT, projectId: 'p-1' })).code).toBe('unauthorised');
    expect((await all(api.listProjects())).flatMap(unwrap)).toMatchObject([{ projectId: 'p-2' }]);
    expect(api.accountStatus()).toEqual([{ account: 'main', key: 'valid' }]);
  });

  test('is not asked about a project that it has no key for, when the account of that is looked for', async () => {
    const { url } = await serve(({ headers, url: path }) =>
      headers.authorization === 'Bearer personal' && path.includes('calm-sea-1')
        ? { body: path.includes('operations') ? { operations: [] } : { endpoints: [] } }
        : { status: 404 },
    );
    const { account } = await keysFor('p-1');
    const api = client(url, { accounts: [account, { name: 'other', key: () => 'personal' }] });
    (await all(api.listOperations('calm-sea-1'))).map(unwrap);
    const [nowhere] = await all(api.listOperations('deep-lake-2'));
    expect(nowhere && errorOf(nowhere).code).toBe('not_found');
    expect(api.accountStatus()).toEqual([
      { account: 'main', key: 'unknown' },
      { account: 'other', key: 'valid' },
    ]);
  });

  test('that cannot be read is an error', async () => {
    const { url } = await serve(() => ({}));
    const { path, account } = await keysFor();
    await rm(path, { recursive: true });
    const api = client(url, { accounts: [account] });
    const [page] = await all(api.listProjects());
    expect(page && errorOf(page)).toMatchObject({ code: 'unauthorised', message: expect.stringContaining('ENOENT') });
    expect(api.accountStatus()).toMatchObject([
      { key: 'missing', message: expect.stringContaining(`keys ${basename(path)} cannot`) },
    ]);
    await mkdir(path);
    expect(await all(api.listProjects())).toEqual([]);
    expect(api.accountStatus()).toEqual([{ account: 'main', key: 'unknown' }]);
  });
});

describe('an expected organization', () => {
  test('is asked for, and projects of another are left out and told', async () => {
    const projects = [
      wireProject('p-1', { org_id: 'org-mine' }),
      wireProject('p-2', { org_id: 'org-other' }),
      wireProject('p-3'),
    ];
    const { url, requests } = await serve(() => ({ body: { projects } }));
    const accounts = [{ name: 'main', key: () => 'k', organization: 'org-mine' }];
    const [first, second] = await all(client(url, { accounts }).listProjects());
    expect(first && unwrap(first).map((project) => project.projectId)).toEqual(['p-1']);
    expect(second && errorOf(second)).toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('shows p-2 and 1 more, which is not of the organization org-mine'),
    });
    expect(requests[0]?.url).toContain('org_id=org-mine');
  });
});

describe('the projects of several accounts', () => {
  const both = (url: string) =>
    client(url, {
      accounts: [
        { name: 'main', key: () => 'key-of-main' },
        { name: 'other', key: () => 'key-of-other' },
      ],
    });

  test('are listed side by side, and given in the order of the accounts', async () => {
    const answers: (() => void)[] = [];
    const { url } = await serve(({ headers }, response) => {
      const name = String(headers.authorization).replace('Bearer key-of-', '');
      answers.push(() => response.end(JSON.stringify({ projects: [wireProject(`p-${name}`)] })));
      // Neither is answered before both were asked for, the second of them first.
      if (answers.length === 2) for (const answer of answers.reverse()) answer();
      return undefined;
    });
    const projects = (await all(both(url).listProjects())).flatMap(unwrap);
    expect(projects).toMatchObject([
      { account: 'main', projectId: 'p-main' },
      { account: 'other', projectId: 'p-other' },
    ]);
  });

  test('are listed of one account where that is wanted', async () => {
    const { url, requests } = await serve(() => ({ body: { projects: [wireProject('p-1')] } }));
    const projects = (await all(both(url).listProjects({ account: 'other' }))).flatMap(unwrap);
    expect(projects).toMatchObject([{ account: 'other', projectId: 'p-1' }]);
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer key-of-other']);
  });
});
