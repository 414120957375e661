/** What goes into a pipe is for programs: one document with --json, and never a colour or a line that moves. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { programPath } from '../support/programs.ts';
import { describeWith } from '../support/requirements.ts';
import { FLEET, POLICIES } from './fleet-files.ts';

const HEADROOM = `version: 1
sources: { counts: { from: prometheus, url: "http://127.0.0.1:1", query: 'sum(c{id="$compute"})' } }
policies:
  - { name: room, kind: headroom, select: { projects: ["*"] }, connections: counts, target: 70%, max_size: 8 }
`;
const COUNTS = 'time,compute,connections\n2026-03-02T09:00:00Z,ep-busy,90\n2026-03-02T10:00:00Z,ep-busy,20\n';
const TOKEN = 'a-token-for-tests-of-pipes';
const AT = ['--fleet', 'snapshot.yaml', '--policies', 'policy.yaml'];
const WEEK = ['--from', '2026-03-02', '--days', '7'];

/** Of every command that takes --json: its words, and how it ends. Those of a daemon get its URL. */
const CALLS: Record<string, { words: string[]; exit?: number; asks?: true }> = {
  init: { words: [] },
  validate: { words: ['policy.yaml', '--matches', '--fleet', 'snapshot.yaml'] },
  plan: { words: [...AT, '--at', '2026-03-02T09:00:00Z'], exit: 2 },
  apply: { words: ['--yes', '--policies', 'policy.yaml', '--queue-url', 'embedded:alone'] },
  explain: { words: ['ep-busy', ...AT] },
  forecast: { words: [...AT, ...WEEK] },
  diff: { words: ['policy.yaml', 'room.yaml', '--fleet', 'snapshot.yaml', ...WEEK] },
  backtest: { words: ['--policy', 'room', '--policies', 'room.yaml', '--connections', 'counts.csv'] },
  guard: { words: ['test', 'none', ...AT], exit: 1 },
  verify: { words: ['--project', 'web-a'], exit: 1 },
  hold: { words: ['web-a/ep-web-a', '--for', '1h', '--reason', 'x', '--size', '1'], asks: true },
  holds: { words: [], asks: true },
  release: { words: ['ep-web-a'], asks: true },
  freeze: { words: ['--all', '--for', '1h', '--reason', 'x'], asks: true },
  unfreeze: { words: ['--all'], asks: true },
  notify: { words: ['list'], asks: true },
  approve: { words: ['993fc3095d2f'], exit: 1, asks: true },
  restore: { words: ['--all'], asks: true },
  status: { words: [], asks: true },
  history: { words: [], asks: true },
  audit: { words: [], asks: true },
  snapshot: { words: [] },
  terraform: { words: AT },
  awake: { words: [] },
  report: { words: [] },
  recommend: { words: ['--policies', 'policy.yaml'] },
  cost: { words: [], exit: 1 },
  savings: { words: ['--policies', 'policy.yaml'], exit: 1 },
  keys: { words: ['create', '--org', 'org-none', '--project', 'web-a', '--name', 'x'], exit: 1 },
};

let platform: Platform;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let daemon: TestDaemon;

beforeEach(async () => {
  platform = await startTestPlatform({ 'web-a': {} });
  folder = await makeFolder({
    'policy.yaml': POLICIES,
    'room.yaml': HEADROOM,
    'counts.csv': COUNTS,
    'snapshot.yaml': FLEET,
  });
  await copyDatabase(join(folder.path, 'alone'));
  daemon = await startTestDaemon({ platform, folder: folder.path, env: { EBB_TOKEN: TOKEN, EBB_MODE: 'observe' } });
  // It can be asked of a compute once it has met it.
  const headers = { authorization: `Bearer ${TOKEN}` };
  const records = async () => (await fetch(`${daemon.url}/api/v1/records`, { headers })).json();
  await expect.poll(records).toMatchObject({ records: [{}] });
});
afterEach(async () => {
  await daemon?.stop();
  await platform?.close();
  await folder?.remove();
});

const env = () => ({ EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_TOKEN: TOKEN });

async function call(name: string) {
  const { words = [], exit = 0, asks } = CALLS[name] ?? {};
  const process = startEbb([name, ...words, '--json', ...(asks ? ['--url', daemon.url] : [])], {
    cwd: folder.path,
    env: env(),
  });
  const status = await process.ended;
  // Where a machine is so busy that this takes ten seconds, it says how far it is.
  const stderr = process.stderr().replaceAll(/^reading the fleet: \d+ of \d+ projects\n/gm, '');
  return { name, status, exit, stdout: process.lines.join('\n'), stderr };
}

function isDocument(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
}

describe('every command that takes --json', () => {
  it('prints one document, or nothing and one line of error, and no control character', async () => {
    const results = await Promise.all(Object.keys(CALLS).map(call));
    const wrong = results.filter(({ status, exit, stdout, stderr }) => {
      const isRight = exit === 1 ? stdout === '' && /^ebb: [^\n]+\n$/.test(stderr) : isDocument(stdout);
      return !isRight || status !== exit || /\p{Cc}/u.test(`${stdout}${stderr}`.replaceAll('\n', ''));
    });
    expect(wrong).toEqual([]);
  });

  it('is among those above', async () => {
    const commands = await Promise.all(COMMANDS.map(({ load }) => load()));
    const withJson = commands.filter((command) =>
      [command, ...command.commands].some(({ options }) => options.some(({ long }) => long === '--json')),
    );
    expect(withJson.map((command) => command.name()).toSorted()).toEqual(Object.keys(CALLS).toSorted());
  });
});

describeWith('script', 'on a terminal', () => {
  /** What a command writes where both streams are a terminal. */
  const seen = (words: string, more: Record<string, string> = {}) => {
    const command = `${process.execPath} ${inject('ebbMain')} ${words}`;
    const options = { cwd: folder.path, env: { PATH: process.env.PATH, TERM: 'xterm-256color', ...env(), ...more } };
    // Exit code 2 of a plan is none of `script`'s own.
    return execFileSync(programPath('script'), ['-qfec', `${command}; true`, '/dev/null'], {
      ...options,
      encoding: 'utf8',
    });
  };
  const COLOUR = /\p{Cc}\[\d/u;

  it.each([
    ['plan', 'plan --fleet snapshot.yaml --policies policy.yaml --at 2026-03-02T09:00:00Z'],
    ['forecast', 'forecast --fleet snapshot.yaml --policies policy.yaml --from 2026-03-02 --days 7'],
  ])('%s has colours, and with NO_COLOR none', (_name, words) => {
    expect(seen(words)).toMatch(COLOUR);
    expect(seen(words, { NO_COLOR: '1' })).not.toMatch(COLOUR);
  });
});
