import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { type Platform, startTestPlatform } from '../support/platform.ts';
import { type Block, blocksOf, consoleText, type Exchange, exchangesOf, withBlocks } from './blocks.ts';
import { type Shell, startShell } from './shell.ts';
import { isSame } from './steady.ts';

const PAGE = 'docs/tutorial.md';
const LONGEST_WAIT_MS = 120_000;
const POLL_MS = 500;

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
  const page = await readFile(PAGE, 'utf8');
  const shown = new Map<number, string>();
  for (const [index, block] of blocksOf(page).entries()) {
    if (block.language === 'sh' && block.note !== 'install') await runScript(block);
    if (block.language === 'console') shown.set(index, await runExchanges(block));
  }
  await expect(withBlocks(page, shown)).toMatchFileSnapshot(`../../${PAGE}`);
  expect(await account.writes()).toEqual([]);
}, 420_000);

it('installs by scripts that there are', async () => {
  const { scripts, bin } = JSON.parse(await readFile('package.json', 'utf8'));
  expect({ scripts, bin }).toMatchObject({ scripts: { build: expect.any(String) }, bin: { ebb: expect.any(String) } });
});

/** All commands of a script, each as the reader sees it end; only `ebb plan` may say by its code that there is something to do. */
async function runScript({ text, line }: Block): Promise<void> {
  const { output, status } = await shell.run(onThisMachine(text));
  expect(text.includes('ebb plan') && status === 2 ? 0 : status, `${PAGE}:${line}: ${output}`).toBe(0);
}

async function runExchanges(block: Block): Promise<string> {
  const done: Exchange[] = [];
  for (const { command, output } of exchangesOf(block)) {
    const got = block.note === 'later' ? await untilSame(command, output) : await outputOf(command);
    // What only varies stays as the page has it.
    done.push({ command, output: isSame(got, output) ? output : got });
  }
  return consoleText(done);
}

async function outputOf(command: string): Promise<string> {
  const { output } = await shell.run(onThisMachine(command));
  return [...ports].reduce((text, [onPage, here]) => text.replaceAll(here, onPage), output);
}

/** What comes by itself: asked for until it is as the page shows it, or for so long that it is not to come any more. */
async function untilSame(command: string, shown: string): Promise<string> {
  const last = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const got = await outputOf(command);
    if (isSame(got, shown) || performance.now() > last) return got;
    await sleep(POLL_MS);
  }
}

/** What of the page can't be so on this machine: ports that are taken, a key that is typed, the vendor's own API. */
function onThisMachine(text: string): string {
  const moved = [...ports].reduce((all, [onPage, here]) => all.replaceAll(onPage, here), text);
  return moved
    .replace('install -m 0600 /dev/stdin', `printf %s ${account.apiKey} | install -m 0600 /dev/stdin`)
    .replace('unset EBB_API_URL EBB_API_KEY', `unset EBB_API_KEY; export EBB_API_URL=${account.url}`);
}
