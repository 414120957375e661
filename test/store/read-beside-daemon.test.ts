/** What commands read of an embedded store that they can't open: from the daemon that has it, or not at all. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { digestOf } from '../../src/app/readings/reading.ts';
import { usageOfFew } from '../../src/app/situation/fleet-usage.ts';
import { commandLineCaller } from '../../src/compose/command-line-caller.ts';
import { announce, folderOf } from '../../src/compose/daemon-file.ts';
import { openForReading } from '../../src/compose/reading.ts';
import { readFacts, withUsageSources } from '../../src/compose/situation.ts';
import { openStore } from '../../src/compose/store.ts';
import { openDump } from '../../src/compose/store-dump.ts';
import { readSettings, type Settings } from '../../src/settings/settings.ts';
import { type EmbeddedFolder, embeddedFolder, temporaryFolder } from '../support/embedded-folder.ts';
import { listenLocally } from '../support/local-server.ts';

const HOLD = {
  ...{ id: 'h-1', project_id: 'p', compute_id: 'ep', owner: 'ann', reason: 'import', freeze: true },
  ...{ size: null, suspend_timeout_seconds: null },
  ...{ created_at: '2026-03-02T08:00:00Z', expires_at: null },
};

const PROJECTS = [
  {
    account: 'default',
    projectId: 'p',
    name: 'p',
    regionId: 'aws-eu-central-1',
    organizationId: 'org',
    updatedAtMs: 0,
  },
];

/** A server in the place of a daemon, which has answers for some paths only; and the requests that have reached it. */
async function listening(answers: Record<string, object>) {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const { pathname } = new URL(request.url ?? '/', 'http://any');
    const answer = answers[pathname];
    response.writeHead(answer ? 200 : 500, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { code: 'internal', message: 'broken' }));
  });
  const { origin, close } = await listenLocally(server);
  onTestFinished(close);
  return { url: origin, requests };
}

/** Settings with the embedded folder `path`, which names that server as its daemon. */
async function announced({ url }: { url: string }, path: string): Promise<Settings> {
  const env = { EBB_QUEUE_URL: `embedded:${path}`, EBB_API_URL: `${url}/api/v2`, EBB_API_KEY: 'secret' };
  const read = readSettings({ env, cwd: path });
  if (!read.ok) throw new Error(read.problems.join());
  await announce(read.settings.queue, { url, token: 'local' });
  return read.settings;
}

/** A folder whose store is open for all tests here: opening one takes seconds of computing. */
let held: EmbeddedFolder & { close(): Promise<void> };
beforeAll(async () => {
  const folder = await embeddedFolder();
  const store = await openStore(await announced({ url: 'http://127.0.0.1:1' }, folder.path));
  if (!store.ok) throw new Error(store.problem);
  held = { ...folder, close: () => store.value.close() };
});
afterAll(async () => {
  await held.close();
  await held.remove();
});

const inUse = (server: { url: string }) => announced(server, held.path);

function readUsage(settings: Settings) {
  return withUsageSources({ settings, live: true }, async (open) => {
    const sources = await open();
    return sources.ok && usageOfFew(sources.value, { projects: PROJECTS, nowMs: 0, mostProjectsAsked: 0 });
  });
}

it('a store that is broken and not in use is no reason to send a token to where a daemon once was', async () => {
  const server = await listening({ '/api/v1/holds': { holds: [HOLD], next: null } });
  const { path, remove } = await temporaryFolder();
  onTestFinished(remove);
  const settings = await announced(server, path);
  await mkdir(join(path, 'db'));
  await writeFile(join(path, 'db', 'PG_VERSION'), 'none');
  const read = await readFacts(settings, ['holds'], 0);
  expect(read).toMatchObject({
    notes: [expect.stringMatching(/^holds are not known: cannot open the embedded queue/)],
  });
  await readUsage(settings);
  expect(server.requests.map(({ url }) => url)).toEqual([]);
  expect(await openDump(settings)).toMatchObject({
    ok: false,
    problem: expect.stringMatching(/^cannot open the embedded/),
  });
});

it('a token that a dead daemon has left is not sent while another process has the store', async () => {
  const server = await listening({ '/api/v1/holds': { holds: [HOLD], next: null } });
  const settings = await inUse(server);
  const file = join(folderOf(settings.queue), 'daemon.json');
  const { pid, ...daemon } = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify({ ...daemon, pid: pid + 1 }));
  expect(await readFacts(settings, ['holds'], 0)).toMatchObject({ notes: [expect.stringContaining('in use')] });
  expect(server.requests.map(({ url }) => url)).toEqual([]);
});

it('holds are read from the daemon also where it tells nothing else', async () => {
  const server = await listening({ '/api/v1/holds': { holds: [HOLD], next: null } });
  const read = await readFacts(await inUse(server), ['holds'], 0);
  expect(read).toMatchObject({ facts: { holds: [{ id: 'h-1', owner: 'ann' }] }, notes: [] });
});

it('budgets are read from the daemon also where it tells nothing else', async () => {
  const server = await listening({ '/api/v1/status': { budgets: [] } });
  expect(await readFacts(await inUse(server), ['budgets'], 0)).toEqual({ facts: { budgets: [] }, notes: [] });
});

it('the daemon hears who reads usage', async () => {
  const server = await listening({});
  await readUsage(await inUse(server));
  const usage = server.requests.filter(({ url }) => url?.startsWith('/api/v1/usage'));
  expect(new Set(usage.map(({ headers }) => headers.from))).toEqual(new Set([commandLineCaller().who]));
});

it('a dump without its last line is an error: the connection has ended early', async () => {
  const { url, requests } = await listening({ '/dump': { ebb_store_dump: 1 } });
  const dump = await openDump(await inUse({ url }));
  const read = async () => {
    for await (const _ of dump.ok ? dump.value.lines : []);
  };
  await expect(read()).rejects.toThrow(`the dump of the daemon at ${url} was cut off: dump again`);
  expect(requests.map((request) => request.url)).toEqual(['/dump']);
});

it.each([
  ['the stored fleet, where all projects are read', ['p'], true],
  ['the API, where daemons have not read all projects', ['p', 'unread'], undefined],
])('an unknown compute is looked up in %s', async (_, projectIds, isStored) => {
  const settings = await inUse({ url: 'http://127.0.0.1:1' });
  const project = { ...PROJECTS[0], account: 'default', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 };
  const reading = { project, computes: [], unreadable: [], branchesRefused: false, readAtMs: 0 } as never;
  const survey = { apiUrl: settings.apiUrl, listedAtMs: 0, projects: digestOf(projectIds) } as never;
  const fleet = {
    readings: new Map([['p', reading]]),
    accounts: new Map([['default', survey]]),
    lists: new Map([['default', projectIds]]),
    atMs: 0,
  };
  const shared = {
    readings: async () => fleet,
    records: async () => new Map(),
    herds: async () => [],
    daemonRuns: async () => true,
  };
  const opened = await openForReading({ settings, subject: 'ep-x', shared });
  expect(opened.ok && opened.value.isStored).toBe(isStored);
  if (opened.ok) await opened.value.close();
});

it('a command waits for a daemon that is reading the fleet for the first time', async () => {
  const settings = await inUse({ url: 'http://127.0.0.1:1' });
  const project = { ...PROJECTS[0], account: 'default', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 };
  const reading = { project, computes: [], unreadable: [], branchesRefused: false, readAtMs: 0 } as never;
  const survey = { apiUrl: settings.apiUrl, listedAtMs: 0, projects: digestOf(['p']) } as never;
  const begun = { readings: new Map(), accounts: new Map(), lists: new Map(), atMs: 0 };
  const done = {
    readings: new Map([['p', reading]]),
    accounts: new Map([['default', survey]]),
    lists: new Map([['default', ['p']]]),
    atMs: 0,
  };
  const asked: boolean[] = [];
  const shared = {
    async readings(again = false) {
      asked.push(again);
      return again ? done : begun;
    },
    records: async () => new Map(),
    herds: async () => [],
    daemonRuns: async () => true,
  };
  const opened = await openForReading({ settings, subject: 'p', shared });
  expect(opened.ok && opened.value.isStored).toBe(true);
  if (opened.ok) await opened.value.close();
  expect(asked).toEqual([false, true]);
});
