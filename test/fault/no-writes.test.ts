/** Whatever is started: nothing is written unless somebody has said so, and nothing ever but what a daemon may write. */
import { expect, it } from 'vitest';
import { createCaller } from '../../src/adapters/control-api/caller.ts';
import { withDaemonGuard } from '../../src/adapters/control-api/control-api.ts';
import { clientOptions } from '../control-api/samples.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, sizedAt } from './fault-case.ts';

/** Each ends by itself; none is told to enforce, nor has anybody said yes. */
const COMMANDS = [
  ['plan', '--json'],
  ['explain', 'ep-one'],
  ['forecast', '--json'],
  ['apply'],
  ['apply', '--json'],
  ['snapshot'],
  ['status'],
  ['history'],
  ['validate', '--matches', 'policy.yaml'],
];

const DAEMONS = [['run'], ['run', '--mode', 'observe']];

describeWith('redis-server', 'without an explicit enforce', () => {
  it('no command and no daemon writes anything to a fleet of which everything differs from what policies want', {
    timeout: CASE_MS,
  }, async (test) => {
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    const platform = await startTestPlatform({ one: {}, two: { state: 'active', connections: 1 }, three: {} });
    test.onTestFinished(() => platform.close());
    const folder = await makeFolder({ 'policy.yaml': sizedAt('8') });
    test.onTestFinished(() => folder.remove());
    const start = (args: readonly string[]) => {
      const env = {
        EBB_API_URL: platform.url,
        EBB_API_KEY: platform.apiKey,
        EBB_QUEUE_URL: redis.url,
        EBB_POLICIES: 'policy.yaml',
        EBB_LISTEN: '127.0.0.1:0',
      };
      const ebb = startEbb(args, { cwd: folder.path, env });
      test.onTestFinished(() => ebb.kill());
      return ebb;
    };
    const daemons = DAEMONS.map(start);
    await eventually(() => {
      const held = daemons.flatMap((daemon) => daemon.logs()).filter(({ event }) => event === 'ebb.held_back');
      expect(held.map(({ compute }) => compute)).toEqual(expect.arrayContaining(['ep-one', 'ep-two', 'ep-three']));
    });
    const ended = await Promise.all(COMMANDS.map(async (args) => [args.join(' '), await start(args).ended] as const));
    expect(Object.fromEntries(ended)).toMatchObject({ 'plan --json': 2, apply: 1, snapshot: 0 });
    for (const daemon of daemons) {
      await daemon.kill('SIGTERM');
      expect(await daemon.ended).toBe(0);
    }
    const requests = await platform.requests();
    expect(requests.length).toBeGreaterThan(3 * daemons.length);
    expect(requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

it("a daemon's transport refuses a DELETE even when asked: it never reaches the API, which would delete", async (test) => {
  const platform = await startTestPlatform({ one: {} });
  test.onTestFinished(() => platform.close());
  const options = clientOptions(platform.url, { accounts: [{ name: 'main', key: () => platform.apiKey }] });
  const call = {
    ...({ account: 'main', method: 'DELETE', template: '/projects/{project_id}/endpoints/{endpoint_id}' } as const),
    ...{ path: '/projects/one/endpoints/ep-one', repeatLocked: false, deadlineMs: 10_000 },
  };
  const guarded = createCaller(options, withDaemonGuard);
  test.onTestFinished(() => guarded.close());
  expect(await guarded.call(call)).toMatchObject({ ok: false, error: { code: 'forbidden' } });
  expect(await platform.requests()).toEqual([]);

  const unguarded = createCaller(options, (send) => send);
  test.onTestFinished(() => unguarded.close());
  expect(await unguarded.call(call)).toMatchObject({ ok: true });
  expect(await platform.writes()).toHaveLength(1);
});
