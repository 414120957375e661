import { existsSync, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openOnceMet, startTestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { boundarySoon, makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';

const WAIT = { timeout: 60_000, interval: 100 };

const always = (name: string, size: string) => `version: 1
policies:
  - name: ${name}
    kind: schedule
    select: { projects: ["one"], min_age: 1m }
    windows: [{ at: always, size: ${size} }]
    otherwise: leave
`;

async function fleet(policy: string, queueUrl?: string) {
  const platform = await startTestPlatform({ one: {}, two: {} }, { operationTimeMs: 100 });
  onTestFinished(() => platform.close());
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  const queue = queueUrl === undefined ? await prepareQueue(folder.path) : { url: queueUrl, group: 'test' };
  await writeFile(join(folder.path, 'policy.yaml'), policy);
  const env = { EBB_QUEUE_URL: queue.url, EBB_GROUP: queue.group };
  const run = async () => {
    const daemon = await startTestDaemon({ platform, folder: folder.path, env, reloads: true });
    onTestFinished(() => daemon.stop());
    return daemon;
  };
  const ebb = async (...args: string[]) => {
    const process = startEbb(args, { cwd: folder.path, env });
    const status = await process.ended;
    return { status, stdout: process.lines.join('\n'), stderr: process.stderr().trimEnd() };
  };
  const json = async (...args: string[]) => {
    const { status, stdout, stderr } = await ebb(...args, '--json');
    if (status !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  };
  const sizes = async () =>
    (await platform.writes()).map(({ path, body }) => {
      const { endpoint } = body as { endpoint: { autoscaling_limit_max_cu?: number } };
      return [path.split('/').at(-1), endpoint.autoscaling_limit_max_cu];
    });
  return {
    platform,
    folder: folder.path,
    run,
    ebb,
    json,
    sizes,
    daemonFile: join(folder.path, 'queue', 'daemon.json'),
  };
}

describe('commands beside a daemon that has the embedded store for itself', () => {
  it('hold a compute, which changes it, until they release it; all of it stands in the history', async () => {
    const { run, ebb, json, sizes, daemonFile } = await fleet(always('small', '0.5'));
    const daemon = await run();
    await expect.poll(sizes, WAIT).toEqual([['ep-one', 0.5]]);
    expect(statSync(daemonFile).mode & 0o777).toBe(0o600);
    const { token } = JSON.parse(readFileSync(daemonFile, 'utf8'));

    const { in_flight: inFlight, ...hold } = await json(
      'hold',
      'ep-one',
      '--for',
      '1h',
      '--reason',
      'import',
      '--size',
      '2-4',
      '--by',
      'ann',
    );
    await expect.poll(sizes, WAIT).toEqual([
      ['ep-one', 0.5],
      ['ep-one', 4],
    ]);
    expect(inFlight).toEqual([]);
    expect((await json('holds')).holds).toEqual([hold]);
    expect(await json('status')).toMatchObject({
      source: 'daemon',
      mode: 'enforce',
      computes: { held: 1, unmatched: 1 },
    });
    const told = await ebb('status');
    expect(told.stdout).toMatch(/^held until .*: ep-one, size 2-4 CU; ann: import$/m);
    expect(told.stdout + told.stderr + JSON.stringify(daemon.logs)).not.toContain(token);
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toMatch(/^ebb_holds_active 1$/m);
    expect(metrics).toMatch(/^ebb_computes\{status="held"\} 1$/m);

    expect(await json('release', 'ep-one')).toMatchObject({ holds: [hold.id] });
    await expect.poll(sizes, WAIT).toEqual([
      ['ep-one', 0.5],
      ['ep-one', 4],
      ['ep-one', 0.5],
    ]);
    const kinds = async () => (await json('history', 'ep-one')).decisions.map(({ kind }: { kind: string }) => kind);
    await expect.poll(kinds, WAIT).toEqual(['write', 'hold', 'write', 'hold', 'write']);

    expect(await ebb('history', 'ep-two')).toMatchObject({
      status: 0,
      stdout: 'the history has nothing of ep-two yet; it begins anew when the store loses its data',
    });
    const slip = { status: 1, stdout: '', stderr: 'ebb: ebb does not know a compute ep-twoo; did you mean "ep-two"?' };
    expect(await ebb('history', 'ep-twoo')).toEqual(slip);

    await daemon.stop();
    expect(existsSync(daemonFile)).toBe(false);
    expect(await ebb('history', 'ep-twoo', '--json')).toEqual(slip);
    const alone = await json('status');
    expect(alone).toMatchObject({ source: 'store', computes: { known: 2 }, mode: null });
    const held = await ebb('hold', 'two/ep-two', '--for', '10m', '--reason', 'x', '--freeze');
    expect(held).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ep-two is held until .*: as it is/) });
    expect((await json('holds')).holds).toMatchObject([{ compute_id: 'ep-two', freeze: true }]);
  });

  it('freeze everything: what becomes due is not written before they unfreeze', async () => {
    const { folder, run, ebb, json, sizes } = await fleet(boundarySoon(3_600_000));
    const daemon = await run();
    const { id } = await json('freeze', '--all', '--for', '1h', '--reason', 'incident');
    await openOnceMet(folder, [daemon], { computes: 2, inMs: 5_000 });
    const frozen = () =>
      daemon.events.filter(
        (event) => event.kind === 'held_back' && event.plan.waiting.some(({ gate }) => gate.code === 'frozen'),
      ).length;
    await expect.poll(frozen, WAIT).toBeGreaterThanOrEqual(2);
    expect(await sizes()).toEqual([]);
    expect(await json('status')).toMatchObject({
      computes: { frozen: 2 },
      waiting: [{ reason: 'frozen', computes: 2 }],
    });
    const held = `2 computes with changes that wait for the end of ${id}`;
    expect(await ebb('unfreeze')).toMatchObject({ status: 1, stdout: held });
    expect(await ebb('unfreeze', '--confirm', '2')).toMatchObject({
      status: 0,
      stdout: `${held}\nfreeze ${id} is over`,
    });
    await expect
      .poll(async () => (await sizes()).toSorted(), WAIT)
      .toEqual([
        ['ep-one', 2],
        ['ep-two', 2],
      ]);
  });
});

describeWith('redis-server', 'commands beside daemons on Redis', () => {
  it('hold until it expires, and restore what no policy selects any more', async () => {
    const redis = await startRedisServer();
    onTestFinished(() => redis.close());
    const { run, json, sizes, platform } = await fleet(always('small', '0.5'), redis.url);
    const first = await run();
    await expect.poll(sizes, WAIT).toEqual([['ep-one', 0.5]]);
    await json('hold', 'ep-one', '--for', '12s', '--reason', 'import', '--size', '2');
    await expect.poll(sizes, WAIT).toEqual([
      ['ep-one', 0.5],
      ['ep-one', 2],
      ['ep-one', 0.5],
    ]);
    expect((await json('holds')).holds).toEqual([]);
    await first.stop();

    const { run: runAgain, json: tell } = await withPolicy(
      platform,
      redis.url,
      always('other', '1').replace('"one"', '"no"'),
    );
    await runAgain();
    expect(await tell('restore', '--all')).toMatchObject({
      computes: expect.arrayContaining([expect.objectContaining({ compute_id: 'ep-one', outcome: 'requested' })]),
    });
    await expect.poll(async () => (await sizes()).at(-1), WAIT).toEqual(['ep-one', 0.25]);
  });

  /** Another daemon of the same group, with other policies. */
  async function withPolicy(platform: Awaited<ReturnType<typeof startTestPlatform>>, queueUrl: string, policy: string) {
    const folder = await makeFolder({ 'policy.yaml': policy });
    onTestFinished(() => folder.remove());
    const env = { EBB_QUEUE_URL: queueUrl, EBB_GROUP: 'test' };
    return {
      async run() {
        const daemon = await startTestDaemon({ platform, folder: folder.path, env });
        onTestFinished(() => daemon.stop());
      },
      async json(...args: string[]) {
        const process = startEbb([...args, '--json'], { cwd: folder.path, env });
        if ((await process.ended) !== 0) throw new Error(process.stderr());
        return JSON.parse(process.lines.join('\n'));
      },
    };
  }
});

describe('commands that make no sense', () => {
  const REFUSED: [string[], RegExp][] = [
    [['hold', 'ep-one', '--reason', 'x', '--size', '2'], /--for <duration>/],
    [
      ['hold', 'ep-one', '--for', '2h', '--reason', 'x', '--size', '3.3'],
      /3\.3 CU is not a size; the nearest are 3 and 4/,
    ],
    [['hold', 'ep-one', '--for', '2x', '--reason', 'x', '--size', '2'], /expected a duration of 1s to 90d/],
    [['freeze', '--for', '2h', '--reason', 'x'], /give either --all or --select/],
    [['freeze', '--select', 'project=web-*', '--for', '2h', '--reason', 'x'], /KEY=GLOB,GLOB; keys are accounts/],
    [['restore'], /give either ids of computes, --owner TEAM or --all/],
    [['status'], /no daemon has used embedded:\.ebb yet: start ebb run/],
  ];

  it.each(REFUSED)('say so in one line: %j', async (args, message) => {
    const folder = await makeFolder();
    onTestFinished(() => folder.remove());
    const process = startEbb(args, { cwd: folder.path });
    expect(await process.ended).toBe(1);
    expect(process.stderr().trimEnd()).toMatch(message);
    expect(process.stderr().trimEnd()).not.toContain('\n');
    expect(existsSync(join(folder.path, '.ebb'))).toBe(false);
  });
});
