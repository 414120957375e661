import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';

const GOOD = `version: 1
policies:
  - { name: a, kind: schedule, select: { projects: ["none"] }, windows: [{ at: always, size: 1 }], otherwise: leave }
`;

interface Ground {
  platform: Platform;
  folder: string;
  takenPort: number;
}

interface Case {
  what: string;
  env?(ground: Ground): Record<string, string>;
  args?(ground: Ground): string[];
  says: RegExp;
}

/** A port of this machine on which nothing listens: discard, reserved. */
const NOBODY = '127.0.0.1:9';

const CASES: readonly Case[] = [
  { what: 'a missing key', env: () => ({ EBB_API_KEY: '' }), says: /no API key: set EBB_API_KEY/ },
  {
    what: 'a key that is refused',
    env: () => ({ EBB_API_KEY: 'wrong' }),
    says: /refuses the API key .*401.*check EBB_API_KEY/,
  },
  {
    what: 'an API that is not there',
    env: () => ({ EBB_API_URL: `http://${NOBODY}/api/v2` }),
    says: /cannot reach .*check EBB_API_URL/,
  },
  {
    what: 'a Redis that is down',
    env: () => ({ EBB_QUEUE_URL: `redis://${NOBODY}` }),
    says: /cannot use Redis at 127\.0\.0\.1:9: connection refused; see that it runs/,
  },
  { what: 'a broken policy', args: () => ['--policies', 'broken.yaml'], says: /broken\.yaml:\d+:\d+/ },
  { what: 'policies that are not there', args: () => ['--policies', 'nowhere'], says: /nowhere/ },
  { what: 'a busy port', args: ({ takenPort }) => ['--listen', `127.0.0.1:${takenPort}`], says: /is in use/ },
  {
    what: 'a folder that cannot be written',
    env: () => ({ EBB_QUEUE_URL: 'embedded:/proc/ebb' }),
    says: /cannot write to the folder \/proc\/ebb .*EBB_QUEUE_URL/,
  },
  { what: 'a password in an argument', args: () => ['--queue-url', 'redis://:pw@127.0.0.1'], says: /EBB_QUEUE_URL/ },
  {
    what: 'writing with a key that is for reading',
    env: () => ({ EBB_API_KEY: '', NEON_API_KEY: 'k', EBB_MODE: 'enforce' }),
    says: /NEON_API_KEY .*reading only/,
  },
  { what: 'an unknown flag', args: () => ['--fast'], says: /unknown option '--fast'/ },
];

describe('ebb run with', () => {
  let ground: Ground;
  const undo: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    const platform = await startTestPlatform({ one: {} });
    const folder = await makeFolder({
      'good.yaml': GOOD,
      'broken.yaml': GOOD.replace('always', 'Mon-Fry 08:00-18:00'),
    });
    await copyDatabase(join(folder.path, '.ebb'));
    const locked = createServer();
    await new Promise<void>((resolve) => locked.listen(0, '127.0.0.1', resolve));
    undo.push(
      () => platform.close(),
      () => folder.remove(),
      () => new Promise((resolve) => locked.close(resolve)),
    );
    const address = locked.address();
    ground = { platform, folder: folder.path, takenPort: typeof address === 'object' ? (address?.port ?? 0) : 0 };
  });
  afterAll(() => Promise.all(undo.map((step) => step())));

  it.each(CASES)('$what ends with one line that says what to do', async ({ what, env, args, says }) => {
    const ebb = startEbb(['run', '--policies', 'good.yaml', '--listen', '127.0.0.1:0', ...(args?.(ground) ?? [])], {
      cwd: ground.folder,
      env: { EBB_API_URL: ground.platform.url, EBB_API_KEY: ground.platform.apiKey, ...env?.(ground) },
    });
    try {
      expect(await ebb.ended).toBe(1);
      expect(ebb.stderr()).toMatch(says);
      expect(ebb.stderr()).not.toMatch(/^\s+at /m);
      expect(ebb.stderr().trim().split('\n').length).toBeLessThanOrEqual(what === 'a broken policy' ? 4 : 1);
    } finally {
      await ebb.kill();
    }
  });
});
