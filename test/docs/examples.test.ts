/** What the pages show is what comes out. The tutorial has a test of its own. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inQuotes } from '../../src/domain/notifications/coming-change.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { FLEET, POLICIES } from '../cli/fleet-files.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { type Block, blocksOf, consoleText, exchangesOf, withBlocks } from './blocks.ts';
import { PAGES, readPage } from './pages.ts';
import { type Shell, startShell } from './shell.ts';
import { isSame } from './steady.ts';

let platform: Platform;
let shell: Shell;
beforeEach(async () => {
  platform = await startTestPlatform({ one: {}, two: {}, three: {} });
  shell = await startShell({ EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey });
  const odd = FLEET.replace('"max_cu":8', '"max_cu":4.5');
  const [first] = blocksOf(readPage('docs/policies.md'));
  const slip = (first?.text ?? '').replace('Mon-Fri', 'Mon-Fry').replace(/^#.*\n/, '');
  const files = {
    'teams/web.yaml': slip,
    'snapshot.yaml': FLEET,
    'odd.yaml': odd,
    'policies/office-hours.yaml': POLICIES,
  };
  await shell.run('mkdir policies teams');
  for (const [name, text] of Object.entries(files)) await shell.run(`printf %s ${inQuotes(text)} > ${name}`);
});
afterEach(async () => {
  await shell?.close();
  await platform?.close();
});

describe('a page that shows what is printed', () => {
  const pages = PAGES.filter((page) => blocksOf(readPage(page)).some(isRun));

  it.each(pages)('%s shows just that', async (page) => {
    const text = readPage(page);
    const shown = new Map<number, string>();
    for (const [index, block] of blocksOf(text).entries()) if (isRun(block)) shown.set(index, await runBlock(block));
    await expect(withBlocks(text, shown)).toMatchFileSnapshot(`../../${page}`);
  });
});

function isRun({ language, note }: Block): boolean {
  return language === 'console' && (note === 'run' || note === 'stays');
}

async function runBlock(block: Block): Promise<string> {
  const done = [];
  for (const { command, output } of exchangesOf(block)) {
    const stays = `${command} > stays & until [ -s stays ]; do sleep 0.1; done; cat stays; kill $!`;
    const { output: got } = await shell.run(block.note === 'stays' ? stays : command);
    done.push({ command, output: isSame(got, output) ? output : got });
  }
  return consoleText(done);
}

it('every policy file on a page is right', () => {
  const files = PAGES.flatMap((page) =>
    blocksOf(readPage(page))
      .filter(({ language, text }) => language === 'yaml' && /^version: 1$/m.test(text) && /^policies:/m.test(text))
      .map(({ line, text }) => ({ path: `${page}:${line}`, text })),
  );
  expect(files.length).toBeGreaterThan(5);
  const problems = files.flatMap((file) => {
    const parsed = parsePolicyFiles([file], { receivers: [{ name: 'dev-team' }] });
    return parsed.ok ? [] : parsed.problems.map(({ message }) => `${file.path}: ${message}`);
  });
  expect(problems).toEqual([]);
});

it('the script that needs no ebb puts sizes and timeouts back, of what sleeps', async () => {
  const [script] = blocksOf(readPage('docs/leaving.md')).filter(({ language }) => language === 'js');
  const before = { autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 2, suspend_timeout_seconds: 600 };
  const baseline = ['one', 'two'].map((name) => ({
    ...{ project_id: name, compute_id: `ep-${name}` },
    ...{ min_cu: 0.25, max_cu: 2, suspend_timeout_seconds: 600 },
  }));
  const folder = await makeFolder({
    'baseline.json': JSON.stringify({ api_url: platform.url, computes: baseline }),
    'restore.mjs': script?.text ?? '',
  });
  await platform.control('computes/ep-two/connect', { connections: 1 });
  await expect.poll(async () => (await readCompute('two')).current_state).toBe('active');
  const run = async () => {
    const env = { PATH: process.env.PATH, EBB_API_KEY: platform.apiKey };
    return (await promisify(execFile)(process.execPath, ['restore.mjs'], { cwd: folder.path, env })).stdout;
  };
  expect(await run()).toBe('ep-one is back\n');
  expect(await run()).toBe('');
  expect(await readCompute('one')).toMatchObject(before);
  expect(await readCompute('two')).toMatchObject({ autoscaling_limit_max_cu: 0.25 });
  await folder.remove();
});

async function readCompute(name: string): Promise<Record<string, unknown>> {
  const url = `${platform.url}/projects/${name}/endpoints/ep-${name}`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${platform.apiKey}` } });
  return ((await answer.json()) as { endpoint: Record<string, unknown> }).endpoint;
}

it('every page below docs/ is in its index', async () => {
  const index = await readFile('docs/README.md', 'utf8');
  const pages = PAGES.filter((page) => page.startsWith('docs/'));
  expect(pages.filter((page) => page !== 'docs/README.md' && !index.includes(`](${page.slice(5)})`))).toEqual([]);
});
