/** What the real service does for certain is in the other tests; here is what it may do instead. */
import { afterEach, expect, it } from 'vitest';
import type { Behaviours } from '../../src/emulator/world/entities.ts';
import { compute, fleetOf, startTestEmulator, type TestEmulator } from './support.ts';

const COMPUTE = '/projects/shop/endpoints/ep-web';
let test: TestEmulator;

async function start(behaviours: Partial<Behaviours>): Promise<void> {
  test = await startTestEmulator({
    behaviours,
    fleet: fleetOf(compute({ id: 'ep-web', state: 'active', connections: 2 })),
  });
}
afterEach(() => test.emulator.close());

const shown = async () => (await test.call('GET', COMPUTE)).body.endpoint;
const change = (settings: object) => test.call('PATCH', COMPUTE, { endpoint: settings });
const connections = async () => (await test.control('GET', '/state')).body.computes[0].connections;

it('timeoutChange: a new timeout alone restarts an awake compute, and not a sleeping one', async () => {
  await start({ timeoutChange: 'restarts' });
  const { body } = await change({ suspend_timeout_seconds: 600 });
  expect(body.operations.map((one: { action: string }) => one.action)).toContain('start_compute');
  test.pass(5_000);
  expect(await connections()).toBe(0);
  test.pass(3_600_000);
  expect(await shown()).toMatchObject({ current_state: 'idle' });
  expect((await change({ suspend_timeout_seconds: 900 })).body.operations).toEqual([]);
});

it('lastActive: activity shows a minute later, also in the list', async () => {
  await start({ lastActive: 'late' });
  const instant = async () => [
    (await shown()).last_active,
    (await test.call('GET', '/projects')).body.projects[0].compute_last_active_at,
  ];
  test.pass(600_000);
  expect(await instant()).toEqual(['2026-11-23T09:09:00Z', '2026-11-23T09:09:00Z']);
  await test.control('POST', '/computes/ep-web/disconnect');
  test.pass(120_000);
  await test.control('POST', '/computes/ep-web/connect', { for_seconds: 1 });
  test.pass(59_000);
  expect(await instant()).toEqual(['2026-11-23T09:10:00Z', '2026-11-23T09:10:00Z']);
  test.pass(2_000);
  expect(await instant()).toEqual(['2026-11-23T09:12:01Z', '2026-11-23T09:12:01Z']);
});

it('computeUpdatedAt: a change leaves it', async () => {
  await start({ computeUpdatedAt: 'stays' });
  const { updated_at: before } = await shown();
  test.pass(60_000);
  expect((await change({ autoscaling_limit_max_cu: 4 })).body.endpoint.updated_at).toBe(before);
});

it.each([
  ['all', 0],
  ['busy', 0],
  ['none', 2],
] as const)('restartDrops %s: of two busy clients %i stay, and of a suspend none', async (restartDrops, left) => {
  await start({ restartDrops });
  await test.call('POST', `${COMPUTE}/restart`);
  test.pass(5_000);
  expect(await connections()).toBe(left);
  await test.call('POST', `${COMPUTE}/suspend`);
  test.pass(5_000);
  expect(await connections()).toBe(0);
});

it('limits: answers carry the limit of a minute', async () => {
  await start({ limits: 'told' });
  expect((await test.call('GET', COMPUTE)).headers.get('x-ratelimit-limit')).toBe('700');
  await test.emulator.close();
  await start({});
  expect((await test.call('GET', COMPUTE)).headers.get('x-ratelimit-limit')).toBeNull();
});
