/** A team freezes its computes at once after a start, before the daemon knows the fleet. */
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { request } from 'undici';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { listenLocally } from '../support/local-server.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';

const TOKEN = 'a-token-of-ann-0123456789';
const WAIT = { timeout: 60_000, interval: 100 };
const CONFIG = `mode: enforce
policies: policies
accounts:
  - { name: main, api_key_env: EBB_API_KEY_MAIN }
  - { name: web, api_key_env: EBB_API_KEY_WEB }
teams:
  team-web: { policies: "policies/web/**", projects: ["web-*"] }
`;
const POLICY = `version: 1
policies:
  - { name: size, kind: schedule, select: { projects: ["web-*"] }, windows: [{ at: always, size: 1 }], otherwise: leave }
`;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

let platform: Platform;
let api: Awaited<ReturnType<typeof startApi>>;
beforeEach(async () => {
  platform = await startTestPlatform({ 'api-one': {}, 'web-shop': {} });
  undo.push(() => platform.close());
  for (const [project, key] of [
    ['api-one', 'napi_main_0123456789'],
    ['web-shop', 'napi_web_0123456789'],
  ])
    await platform.control('keys', { kind: 'project', project, key });
  api = await startApi(platform.origin);
});

/** The API of a platform. Lists of projects wait until `listing` resolves to true; with false they fail for the account web. */
async function startApi(origin: string) {
  const told = { listing: Promise.resolve(true) };
  const server = createServer(async (incoming, response) => {
    const { authorization = '' } = incoming.headers;
    const isList = incoming.url?.startsWith('/api/v2/projects?') === true;
    if (isList && !(await told.listing) && authorization.includes('web')) {
      response.writeHead(503).end('{}');
      return;
    }
    const { method = 'GET', url = '/' } = incoming;
    const { 'content-type': type } = incoming.headers;
    const headers = { authorization, ...(type !== undefined && { 'content-type': type }) };
    const answer = await request(`${origin}${url}`, { method, headers, body: method === 'GET' ? null : incoming });
    response.writeHead(answer.statusCode, { 'content-type': 'application/json' });
    response.end(await answer.body.text());
  });
  const local = await listenLocally(server);
  undo.push(local.close);
  return { told, url: `${local.origin}/api/v2` };
}

async function startDaemon() {
  const folder = await makeFolder({ 'ebb.yaml': CONFIG, tokens: `ann [freeze team-web]: ${TOKEN}\n` });
  undo.push(() => folder.remove());
  await mkdir(join(folder.path, 'policies/web'), { recursive: true });
  await writeFile(join(folder.path, 'policies/web/size.yaml'), POLICY);
  await copyDatabase(join(folder.path, '.ebb'));
  const listen = `127.0.0.1:${await freePort()}`;
  const env = {
    ...{ EBB_API_URL: api.url, EBB_LISTEN: listen, EBB_TOKEN_FILE: 'tokens' },
    ...{ EBB_API_KEY_MAIN: 'napi_main_0123456789', EBB_API_KEY_WEB: 'napi_web_0123456789' },
  };
  const ebb = startEbb(['run'], { cwd: folder.path, env });
  undo.push(() => ebb.kill());
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const answer = await fetch(`http://${listen}/api/v1/${path}`, {
      ...{ method, headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, ...((await answer.json()) as object) };
  };
  const freeze = (project: string) =>
    ask('POST', 'freezes', { select: { projects: [project] }, reason: 'release', for_seconds: 600 });
  const hasStarted = () => ebb.logs().some(({ event }) => event === 'ebb.start');
  return { ask, freeze, hasStarted };
}

it('before the first list of projects has ended, a freeze of a team is set, and nothing is written', async () => {
  let endList: (isWhole: boolean) => void = () => {};
  api.told.listing = new Promise((resolve) => {
    endList = resolve;
  });
  const { ask, freeze, hasStarted } = await startDaemon();
  const set = { status: 201, team: 'team-web', covers: 0, partial: true };
  await expect.poll(() => freeze('web-shop').catch(String), WAIT).toMatchObject(set);
  expect(await freeze('shop')).toMatchObject(set);
  expect(hasStarted()).toBe(false);
  endList(true);
  await expect
    .poll(() => ask('GET', 'computes'), WAIT)
    .toMatchObject({
      computes: expect.arrayContaining([expect.objectContaining({ compute_id: 'ep-web-shop', status: 'frozen' })]),
    });
  expect(await freeze('shop')).toMatchObject({ status: 403, message: expect.stringContaining('no compute in it') });
  expect(await platform.writes()).toEqual([]);
  await ask('DELETE', 'freezes');
  await expect
    .poll(() => platform.writes(), WAIT)
    .toMatchObject([{ body: { endpoint: { autoscaling_limit_max_cu: 1 } } }]);
});

it('while the projects of an account are not known, a freeze of a team is set', async () => {
  api.told.listing = Promise.resolve(false);
  const { freeze, hasStarted } = await startDaemon();
  await expect.poll(hasStarted, WAIT).toBe(true);
  expect(await freeze('web-shop')).toMatchObject({ status: 201, team: 'team-web', covers: 0, partial: true });
});
