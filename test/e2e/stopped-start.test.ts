import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { wireProject } from '../control-api/samples.ts';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { listenLocally } from '../support/local-server.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';

const POLICY = `version: 1
policies:
  - { name: p, kind: schedule, select: { projects: ["*"] }, windows: [{ at: always, size: 1 }], otherwise: leave }
`;

/** A control API whose list of projects always has another page. */
async function startEndlessApi() {
  let pages = 0;
  const server = createServer((_, response) => {
    pages += 1;
    response.end(JSON.stringify({ projects: [wireProject(`p-${pages}`)], pagination: { cursor: `c-${pages}` } }));
  });
  const { origin, close } = await listenLocally(server);
  onTestFinished(close);
  return { url: `${origin}/api/v2`, pages: () => pages };
}

describe('a daemon that is stopped while it starts', () => {
  it.each([
    ['SIGTERM', 0],
    ['SIGINT', 130],
  ] as const)('on %s ends with %i, and asks nothing more', async (signal, code) => {
    const api = await startEndlessApi();
    const folder = await makeFolder({ 'policy.yaml': POLICY });
    onTestFinished(() => folder.remove());
    await copyDatabase(join(folder.path, '.ebb'));
    const ebb = startEbb(['run', '--policies', 'policy.yaml', '--listen', '127.0.0.1:0'], {
      cwd: folder.path,
      env: { EBB_API_URL: api.url, EBB_API_KEY: 'napi_0123456789abcdef' },
    });
    onTestFinished(() => ebb.kill());
    // More than the budget gives at once: it is in the middle of the list.
    await expect.poll(api.pages, { timeout: 50_000 }).toBeGreaterThan(25);
    ebb.child.kill(signal);
    expect([await ebb.ended, ebb.stderr()]).toEqual([code, '']);
    // The list has 300 pages before it is given up, for which the budget takes 25 s.
    expect(api.pages()).toBeLessThan(150);
  });
});

it('a daemon that is stopped ends also where something of it goes on', async () => {
  const platform = await startTestPlatform({ one: {} });
  onTestFinished(() => platform.close());
  const folder = await makeFolder({ 'policy.yaml': POLICY });
  onTestFinished(() => folder.remove());
  await copyDatabase(join(folder.path, '.ebb'));
  const goesOn = '--import=data:text/javascript,setInterval(()=>{},1000)';
  const ebb = startEbb(['run', '--policies', 'policy.yaml', '--listen', '127.0.0.1:0'], {
    cwd: folder.path,
    env: { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, NODE_OPTIONS: goesOn, EBB_LOG_FORMAT: 'text' },
  });
  onTestFinished(() => ebb.kill());
  // Its start is over once it has reconciled.
  await expect.poll(() => ebb.lines.some((line) => line.includes('observe')), { timeout: 50_000 }).toBe(true);
  ebb.child.kill('SIGTERM');
  expect(await ebb.ended).toBe(0);
  // For people, as it was asked for, although the output is a pipe.
  expect(ebb.lines.filter((line) => !/^\[[\d:]{8}\] [A-Z]+: [^{]/.test(line))).toEqual([]);
});

it('a daemon logs JSON on a terminal where log_format asks for it, and else text', async () => {
  const platform = await startTestPlatform({ one: {} });
  onTestFinished(() => platform.close());
  const firstLine = async (config: string) => {
    const folder = await makeFolder({ 'policy.yaml': POLICY, 'ebb.yaml': config });
    onTestFinished(() => folder.remove());
    await copyDatabase(join(folder.path, '.ebb'));
    const terminal = '--import=data:text/javascript,process.stdout.isTTY=true';
    const ebb = startEbb(['run', '--policies', 'policy.yaml', '--listen', '127.0.0.1:0'], {
      cwd: folder.path,
      env: { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, NODE_OPTIONS: terminal },
    });
    onTestFinished(() => ebb.kill());
    await expect.poll(() => ebb.lines.length, { timeout: 50_000 }).toBeGreaterThan(0);
    return [ebb.lines[0], ebb.logs()[0]?.event];
  };
  expect(await firstLine('log_format: json\n')).toEqual([expect.stringMatching(/^\{/), 'ebb.start']);
  expect(await firstLine('mode: observe\n')).toEqual([expect.stringMatching(/ INFO: /), undefined]);
});
