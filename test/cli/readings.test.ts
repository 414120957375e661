/** Commands beside a daemon: they show what it has read, and ask the control API for nothing. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { SURVEYS_COLLECTION } from '../../src/app/readings/reading.ts';
import { openStore } from '../../src/compose/store.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { DAY_MS, usageFleet } from '../usage/support.ts';
import { onTrial } from './fleet-files.ts';

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
  ['forecast', '--from', AT, '--days', '2', '--json'],
  ['diff', 'policy.yaml', 'policy.yaml', '--from', AT, '--days', '2', '--json'],
  ['snapshot', '--json'],
  ['validate', '--matches', '--json'],
];

interface Finding {
  finding: string;
  compute_id: string;
  proposed: unknown;
  saves: { cu_hours_month: { low: number; high: number } };
}

interface AwakeCause {
  compute_id: string;
  cause: string;
  usd_month: { low: number; high: number };
}

/** A key that the control API refuses: each request of a command that has it is one that is answered 401. */
const NO_KEY = 'napi_of_nobody';

type Undo = (step: () => Promise<void>) => void;

/** A daemon that has read the whole fleet, and commands that use its store with {@link NO_KEY}. */
async function startBeside(kind: 'embedded' | 'redis', undo: Undo, platform: Platform, policies = POLICIES) {
  undo(() => platform.close());
  const { path: cwd, remove } = await makeFolder({ 'policy.yaml': policies });
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
    wasteMs: 1_000,
    reloads: true,
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
      // What was seen of the account is stored after the readings of all its projects.
      expect(Object.keys(readings[0]?.documents ?? {})).toEqual(['default']);
    },
    { timeout: 100_000, interval: 100 },
  );
  return {
    url: daemon.url,
    cwd,
    reload: () => daemon.reload(),
    /** The findings of the waste page, once so many projects have been analysed. */
    waste: (count: number) =>
      vi.waitFor(
        async () => {
          const answer = await fetch(`${daemon.url}/api/v1/waste`);
          const { projects, findings } = (await answer.json()) as { projects: number; findings: Finding[] };
          expect(projects).toBe(count);
          return findings;
        },
        { timeout: 100_000, interval: 100 },
      ),
    stop,
    start: (args: readonly string[]) => startEbb(args, { cwd, env }),
    async ebb(args: readonly string[], more: Record<string, string> = {}) {
      const run = startEbb(args, { cwd, env: { ...env, ...more } });
      const status = await run.ended;
      return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
    },
    /** The requests of commands that have {@link NO_KEY}. */
    refused: async () => (await platform.requests()).flatMap(({ status, route }) => (status === 401 ? [route] : [])),
    /** Lets the last list of projects be so old. No daemon may have the store open. */
    async age(ms: number) {
      const read = readSettings({ env, cwd });
      const opened = read.ok ? await openStore(read.settings) : read;
      if (!opened.ok) throw new Error(JSON.stringify(opened));
      const { store, close } = opened.value;
      const seen = JSON.parse((await store.document(SURVEYS_COLLECTION, 'default')) ?? '');
      await store.putDocument(
        SURVEYS_COLLECTION,
        'default',
        JSON.stringify({ ...seen, t: (await store.timeMs()) - ms }),
      );
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
    const state = (nth: number) => (nth % 3 === 0 ? 'active' : 'idle');
    const fleet = Array.from({ length: PROJECTS }, (_, nth) => [`shop-${nth}`, { state: state(nth), maxCu: 2 }]);
    const platform = await startTestPlatform(Object.fromEntries(fleet));
    const { ebb, refused, stop, age, waste } = await startBeside(kind, onTestFinished, platform);
    const own = { EBB_API_KEY: platform.apiKey };
    // Then it has stored the account's plan, from which commands know prices.
    await waste(PROJECTS);
    for (const args of COMMANDS) {
      const [shared, live] = await Promise.all([ebb(args), ebb([...args, '--live'], own)]);
      expect([args, shared.status, withoutInstant(shared.stdout)]).toEqual([
        args,
        live.status,
        withoutInstant(live.stdout),
      ]);
      expect([args, shared.stderr]).toEqual([args, expect.stringMatching(/as of \d+ s ago, from ebb's store/)]);
      expect([args, live.stderr]).toEqual([args, expect.not.stringContaining('as of')]);
    }
    expect(await refused()).toEqual([]);

    // Its project is read now; where that fails, what is stored serves.
    const asked = ['explain', 'ep-shop-7', '--at', AT, '--json'];
    const [stored, now] = await Promise.all([ebb(asked), ebb(asked, own)]);
    expect([stored.status, stored.stdout]).toEqual([now.status, now.stdout]);
    expect(stored.stderr).toMatch(/as of \d+ s ago, .*can't be read now: .* refuses the API key/);
    expect(now.stderr).not.toContain('as of');
    expect(await refused()).toEqual(['/projects/{project_id}/endpoints']);

    const unknown = await ebb(['explain', 'ep-shop-77']);
    const nearest = /as of \d+ s ago.*\n.*no compute ep-shop-77; the nearest of 24: ep-shop-17, ep-shop-7/;
    expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringMatching(nearest)]);

    // Of one compute only its project is asked for, by whatever name.
    for (const name of ['ep-shop-7', 'shop-7']) await ebb(['explain', name, '--live']);
    const ofOneProject = '/projects/{project_id}/endpoints';
    expect(await refused()).toEqual([ofOneProject, ofOneProject, ofOneProject]);

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

function commandsUseOperations(kind: 'embedded' | 'redis'): void {
  it('what it has read of operations is what the waste page and commands go by', async ({ onTestFinished }) => {
    const cases = [
      { load: [{ class: 'bursty_api', cu: 1, utcOffsetHours: 0 }] },
      { load: [{ class: 'office_users', cu: 1.5, utcOffsetHours: 1 }], maxCu: 8 },
      { state: 'active', suspendTimeoutSeconds: -1, minCu: 2, maxCu: 4 },
    ] as const;
    const fleet = Array.from({ length: 6 }, (_, nth) => [`shop-${nth}`, { ...cases[nth % cases.length] }]);
    const platform = await startTestPlatform(Object.fromEntries(fleet), {
      ...{ historyMs: 35 * DAY_MS, availabilityCheckMs: 0 },
    });
    // No policy selects branches: only the findings need their names.
    const policies = POLICIES.replace(', branches: ["main*"]', '');
    const { ebb, refused, waste, cwd } = await startBeside(kind, onTestFinished, platform, policies);
    const own = { EBB_API_KEY: platform.apiKey };
    const early = await ebb(['snapshot']);
    expect([early.status, early.stderr]).toEqual([0, expect.stringMatching(/as of \d+ s ago, from ebb's store/)]);
    const onThePage = await waste(6);
    expect(onThePage.length).toBeGreaterThan(0);

    const recommended = await ebb(['recommend', '--json']);
    const findingsOf = ({ stdout }: { stdout: string }) => JSON.parse(stdout).findings as Finding[];
    expect(recommended.stderr).toMatch(/as of \d+ s ago, from ebb's store.*; operations as of \d+ s to \d+ s ago;/);
    expect(findingsOf(recommended)).toEqual(onThePage);
    const live = await ebb(['recommend', '--json', '--live'], own);
    const roughly = (all: Finding[]) =>
      all.map(({ finding, compute_id, proposed, saves: { cu_hours_month: saves } }) => [
        ...[finding, compute_id, proposed],
        ...[saves.low, saves.high].map((hours) => Number(hours.toPrecision(2))),
      ]);
    expect(roughly(findingsOf(live))).toEqual(roughly(onThePage));

    const causes = async (...args: Parameters<typeof ebb>) => {
      const found = JSON.parse((await ebb(...args)).stdout) as AwakeCause[];
      const cost = ({ usd_month: { low, high } }: AwakeCause) => low + high;
      expect(found).toEqual(found.toSorted((a, b) => cost(b) - cost(a)));
      return found.map(({ compute_id, cause }) => [compute_id, cause]).toSorted();
    };
    const shared = await causes(['awake', '--json']);
    expect(shared.length).toBeGreaterThan(0);
    // Computes that cost nearly the same may change places from one reading to the next.
    expect(shared).toEqual(await causes(['awake', '--json', '--live'], own));

    await ebb(['usage', 'export', '--out', 'shared']);
    await ebb(['usage', 'export', '--out', 'live', '--live'], own);
    const [fromIso, toIso] = [27 * DAY_MS, DAY_MS].map((ago) => new Date(Date.now() - ago).toISOString());
    const operationsIn = async (folder: string) =>
      (await readFile(join(cwd, folder, 'operations.csv'), 'utf8'))
        .split('\n')
        .filter((line) => {
          const [, , , , at = ''] = line.split(',');
          return at > (fromIso ?? '') && at < (toIso ?? '');
        })
        .sort();
    const exported = await operationsIn('shared');
    expect(exported.length).toBeGreaterThan(100);
    expect(exported).toEqual(await operationsIn('live'));
    expect(await refused()).toEqual([]);

    // The names of branches are stored with the operations.
    const taken = await ebb(['snapshot']);
    const snapshots = [taken.stdout, (await ebb(['snapshot', '--live'], own)).stdout];
    for (const text of snapshots) expect(text.match(/name: main/g)).toHaveLength(6);
    expect(await refused()).toEqual([]);

    // More days than the leader reads.
    await ebb(['awake', '--days', '60']);
    expect(new Set(await refused())).toEqual(new Set(['/projects/{project_id}/operations']));
  });
}

/** Less than the time before a boundary in which live reads wait. */
const BOUNDARY_IN_MS = 130_000;

describe('beside a daemon that expects a boundary of many computes', () => {
  it('live reads of the fleet wait and say why; one project is read at once', async ({ onTestFinished }) => {
    const fleet = Array.from({ length: 101 }, (_, nth) => [`shop-${nth}`, { maxCu: 2 }]);
    const platform = await startTestPlatform(Object.fromEntries(fleet));
    const { ebb, refused, start, url, cwd, reload } = await startBeside('embedded', onTestFinished, platform);
    expect(await ebb(['explain', 'ep-shop-7', '--live'])).toMatchObject({ stderr: expect.stringContaining('401') });
    const asked = await refused();
    const at = (ms: number) => `${new Date(Date.now() + ms).toISOString().slice(0, 19)}Z`;
    const windows = `windows: [{ at: ${at(BOUNDARY_IN_MS)}/${at(BOUNDARY_IN_MS + DAY_MS)}, size: 1-2 }]`;
    await writeFile(join(cwd, 'policy.yaml'), POLICIES.replace(/windows: .*/, windows));
    await reload();
    await vi.waitFor(
      async () => {
        const { herds } = (await (await fetch(`${url}/api/v1/status`)).json()) as { herds: unknown[] };
        expect(herds).toEqual([expect.objectContaining({ account: 'default', computes: 101 })]);
      },
      { timeout: 60_000, interval: 100 },
    );
    const commands = [['plan'], ['snapshot'], ['validate', '--matches']].map((args) => start([...args, '--live']));
    for (const command of commands) {
      const waits = /waiting for \d+ .*: 101 computes of account default change at .*Z/;
      await vi.waitFor(() => expect(command.stderr()).toMatch(waits), { timeout: 60_000, interval: 100 });
      await command.kill();
    }
    expect(await refused()).toEqual(asked);
  });
});

for (const commandsAreServed of [commandsShowReadings, commandsUseOperations]) {
  describe('beside a daemon on an embedded store', () => commandsAreServed('embedded'));
  describeWith('redis-server', 'beside a daemon on Redis', () => commandsAreServed('redis'));
}

describe('beside a daemon that collects usage', () => {
  const dayFromNow = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
  // Branches are selected, so that the daemon reads them, too.
  const policies = onTrial(dayFromNow(-60), dayFromNow(-4)).replace('["*"]', '["*"], branches: ["*"]');

  it('nothing is asked of the control API', async ({ onTestFinished }) => {
    const fleet = { ...usageFleet(), historyMs: 35 * DAY_MS };
    const platform = await startTestPlatform({}, { fleet, availabilityCheckMs: 0 });
    const { ebb, refused, url, cwd, waste } = await startBeside('embedded', onTestFinished, platform, policies);
    const own = { EBB_API_KEY: platform.apiKey };
    const hasUsage = async () => {
      const answer = await fetch(`${url}/api/v1/usage?account=default/org-acme`);
      const { usage } = (await answer.json()) as { usage: { unit: string }[] };
      // The facts about all units are stored last.
      expect(usage.map(({ unit }) => unit)).toContain(' ');
    };
    await vi.waitFor(hasUsage, { timeout: 100_000, interval: 100 });
    for (const args of [
      ['cost', '--json'],
      ['cost', '--by', 'project', '--csv'],
      ['savings', '--json'],
      ['plan', '--at', `${dayFromNow(0)}T09:00:00Z`],
    ]) {
      const [shared, live] = await Promise.all([ebb(args), ebb([...args, '--live'], own)]);
      expect([args, shared.status, shared.stdout]).toEqual([args, live.status, live.stdout]);
      expect([args, shared.stderr]).toEqual([args, expect.stringContaining('as of')]);
      expect([args, await refused()]).toEqual([args, []]);
    }
    expect(await refused()).toEqual([]);

    await waste(3);
    const exported = await ebb(['usage', 'export', '--out', 'shared']);
    const { status } = await ebb(['usage', 'export', '--out', 'live', '--live'], own);
    const usageIn = (folder: string) => readFile(join(cwd, folder, 'usage.csv'), 'utf8');
    expect([await usageIn('shared'), exported.status]).toEqual([await usageIn('live'), status]);
    for (const command of ['recommend', 'awake']) await ebb([command]);
    expect(await refused()).toEqual([]);
  });
});
