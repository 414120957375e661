import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { type Platform, startTestPlatform } from '../support/platform.ts';
import { runPage } from './run-page.ts';
import { type Shell, startShell } from './shell.ts';

/** Ports of the page, and those that are free here. */
const ports = new Map<string, string>();
let account: Platform;
let shell: Shell;

beforeEach(async () => {
  for (const port of ['8099', '9464']) ports.set(`127.0.0.1:${port}`, `127.0.0.1:${await freePort()}`);
  account = await startTestPlatform({ mine: {}, 'mine-too': {} });
  shell = await startShell({ EBB_LISTEN: ports.get('127.0.0.1:9464') ?? '' });
});
afterEach(async () => {
  await shell?.close();
  await account?.close();
});

it('works word for word, and prints what the tutorial shows', async () => {
  const toPage = (text: string) => [...ports].reduce((all, [onPage, here]) => all.replaceAll(here, onPage), text);
  await runPage('docs/tutorial.md', { shell, toHere: onThisMachine, toPage });
  expect(await account.writes()).toEqual([]);
}, 420_000);

it('installs by scripts that there are', async () => {
  const { scripts, bin } = JSON.parse(await readFile('package.json', 'utf8'));
  expect({ scripts, bin }).toMatchObject({ scripts: { build: expect.any(String) }, bin: { ebb: expect.any(String) } });
});

/** What of the page can't be so on this machine: ports that are taken, a key that is typed, the vendor's own API. */
function onThisMachine(text: string): string {
  const moved = [...ports].reduce((all, [onPage, here]) => all.replaceAll(onPage, here), text);
  return moved
    .replace('install -m 0600 /dev/stdin', `printf %s ${account.apiKey} | install -m 0600 /dev/stdin`)
    .replace('unset EBB_API_URL EBB_API_KEY', `unset EBB_API_KEY; export EBB_API_URL=${account.url}`);
}
