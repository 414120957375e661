/** Commands beside a daemon: they show what it has read, and ask the control API for nothing. */
import { describe, expect, it, vi } from 'vitest';
import { SEEN_COLLECTION } from '../../src/app/readings/reading.ts';
import { openStore } from '../../src/compose/store.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const PROJECTS = 24;
const AT = '2026-03-02T09:00:00Z';

/** Branches are selected, so that the daemon reads them, too. */
const POLICIES = `version: 1
owner: team-shop
policies:
  - name: larger
    kind: schedule
    select: { projects: ["shop-*"], branches: ["main*"], min_age: 0s }
    windows: [{ at: Mon-Fri 08:00-18:00, size: 1-2 }]
    otherwise: { size: 0.25 }
`;

/** What each command is asked for, so that it answers the same at another instant. */
const COMMANDS: readonly (readonly string[])[] = [
  ['plan', '--at', AT, '--json'],
  ['explain', 'ep-shop-7', '--at', AT, '--json'],
  ['forecast', '--from', AT, '--days', '2', '--json'],
  ['diff', 'policy.yaml', 'policy.yaml', '--from', AT, '--days', '2', '--json'],
  ['snapshot', '--json'],
  ['validate', '--matches', '--json'],
];

/** A key that the control API refuses: each request of a command that has it is one that is answered 401. */
const NO_KEY = 'napi_of_nobody';

type Undo = (step: () => Promise<void>) => void;

/** A daemon that has read the whole fleet, and commands that use its store with {@link NO_KEY}. */
async function startBeside(kind: 'embedded' | 'redis', undo: Undo) {
  const state = (nth: number) => (nth % 3 === 0 ? 'active' : 'idle');
  const fleet = Array.from({ length: PROJECTS }, (_, nth) => [`shop-${nth}`, { state: state(nth), maxCu: 2 }]);
  const platform = await startTestPlatform(Object.fromEntries(fleet));
  undo(() => platform.close());
  const { path: cwd, remove } = await makeFolder({ 'policy.yaml': POLICIES });
  undo(remove);
  const queue = kind === 'redis' ? await startRedis(undo) : await prepareQueue(cwd);
  const env = {
    ...{ EBB_API_URL: platform.url, EBB_API_KEY: NO_KEY, EBB_POLICIES: 'policy.yaml' },
    ...{ EBB_QUEUE_URL: queue.url, EBB_GROUP: queue.group },
  };
  const daemon = await startTestDaemon({
    platform,
    folder: cwd,
    env: { EBB_MODE: 'observe', EBB_QUEUE_URL: queue.url },
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= daemon.stop();
    return stopping;
  };
  undo(stop);
  await vi.waitFor(
    async () => {
      const answer = await fetch(`${daemon.url}/api/v1/readings`);
      const { readings } = (await answer.json()) as { readings: { collection: string; documents: object }[] };
      const counts = readings.map(({ documents }) => Object.keys(documents).length);
      expect([counts[0], counts.slice(2).reduce((sum, count) => sum + count)]).toEqual([1, PROJECTS]);
    },
    { timeout: 100_000, interval: 100 },
  );
  return {
    platform,
    stop,
    async ebb(args: readonly string[], more: Record<string, string> = {}) {
      const run = startEbb([...args], { cwd, env: { ...env, ...more } });
      const status = await run.ended;
      return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
    },
    /** The requests of commands that have {@link NO_KEY}. */
    refused: async () => (await platform.requests()).filter(({ status }) => status === 401).length,
    /** Lets the last list of projects be so old. No daemon may have the store open. */
    async age(ms: number) {
      const read = readSettings({ env, cwd });
      const opened = read.ok ? await openStore(read.settings) : read;
      if (!opened.ok) throw new Error(JSON.stringify(opened));
      const { store, close } = opened.value;
      const seen = JSON.parse((await store.document(SEEN_COLLECTION, 'default')) ?? '');
      await store.putDocument(SEEN_COLLECTION, 'default', JSON.stringify({ ...seen, t: (await store.timeMs()) - ms }));
      await close();
    },
  };
}

async function startRedis(undo: Undo) {
  const redis = await startRedisServer();
  undo(redis.close);
  return { url: redis.url, group: 'test' };
}

/** Without the instant at which a snapshot was taken. */
const withoutInstant = (text: string) => text.replace(/"taken_at": "[^"]*"/, '');

function commandsShowReadings(kind: 'embedded' | 'redis'): void {
  it('commands show what it has read, which is what they read themselves', async ({ onTestFinished }) => {
    const { platform, ebb, refused, stop, age } = await startBeside(kind, onTestFinished);
    const own = { EBB_API_KEY: platform.apiKey };
    for (const args of COMMANDS) {
      const shared = await ebb(args);
      const live = await ebb([...args, '--live'], own);
      expect([args, shared.status, withoutInstant(shared.stdout)]).toEqual([
        args,
        live.status,
        withoutInstant(live.stdout),
      ]);
      expect([args, shared.stderr]).toEqual([args, expect.stringMatching(/as of \d+ s ago, from ebb's store/)]);
      expect([args, live.stderr]).toEqual([args, expect.not.stringContaining('as of')]);
    }
    expect(await refused()).toBe(0);

    const unknown = await ebb(['explain', 'ep-shop-77']);
    const nearest = /as of \d+ s ago.*\n.*no compute ep-shop-77; the nearest of 24: ep-shop-17, ep-shop-7/;
    expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringMatching(nearest)]);
    expect(await refused()).toBe(0);

    // Everything else about these answers is the same, so that it is the flag that makes the difference.
    expect(await ebb(['plan', '--live'])).toMatchObject({ status: 1, stderr: expect.stringContaining('401') });
    const other = await ebb(['plan', '--api-url', platform.url.replace('127.0.0.1', 'localhost')]);
    expect(other).toMatchObject({ status: 1, stderr: expect.stringContaining('401') });

    await stop();
    await age(540_000);
    expect((await ebb(['plan', '--at', AT])).stderr).toMatch(/as of 9 min ago/);
    await age(600_001);
    expect(await ebb(['plan', '--at', AT])).toMatchObject({ status: 1, stderr: expect.stringContaining('401') });
  });
}

describe('beside a daemon on an embedded store', () => commandsShowReadings('embedded'));
describeWith('redis-server', 'beside a daemon on Redis', () => commandsShowReadings('redis'));
