import { afterEach, describe, expect, it } from 'vitest';
import type { Fleet, FleetCompute, Load } from '../../src/emulator/fleet.ts';
import { parseFleet } from '../../src/emulator/fleet-file.ts';
import { generateFleet } from '../../src/emulator/generate-fleet.ts';
import { createWorld } from '../../src/emulator/world/create-world.ts';
import type { WorldState } from '../../src/emulator/world/entities.ts';
import { execute } from '../../src/emulator/world/execute.ts';
import { demandAt } from '../../src/emulator/world/load.ts';
import { causesAt, usageAt } from '../../src/emulator/world/usage.ts';
import { compute, fleetOf, START_MS, startTestEmulator, type TestEmulator } from './support.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function live(computes: FleetCompute[], ms: number, steps = 1): WorldState {
  const world = createWorld({ fleet: fleetOf(...computes), seed: 7, startMs: START_MS, operationTimeMs: 1000 });
  for (let step = 1; step <= steps; step += 1) {
    execute(world, { kind: 'pass_time' }, START_MS + (ms * step) / steps);
  }
  return world;
}

function usedBy(world: WorldState, id: string) {
  const one = world.computes.get(id);
  if (one === undefined) throw new Error(`no compute ${id}`);
  return { ...usageAt(one, world.nowMs), causes: Object.fromEntries(causesAt(one, world.nowMs)) };
}

describe('clients of a load', () => {
  it('wake a compute, keep it awake while they are busy, and let it sleep', () => {
    const cron: Load = { class: 'cron_ping', cu: 0, everySeconds: 900 };
    const world = live([compute({ id: 'ep-a', load: [cron] })], 2 * HOUR_MS);
    const { activeMs, causes } = usedBy(world, 'ep-a');
    // Eight visits, each a second and the timeout of 300 s, and the second in which the suspend runs.
    expect(activeMs / 1000).toBeCloseTo(8 * 302, -2);
    expect(causes.cron_ping).toBe(8000);
  });

  it('make autoscaling follow them between minimum and maximum', () => {
    const points = [
      { atMs: START_MS, cu: 0.1 },
      { atMs: START_MS + HOUR_MS, cu: 1.5 },
      { atMs: START_MS + 2 * HOUR_MS, cu: 9 },
    ];
    const world = live([compute({ id: 'ep-a', state: 'active', load: [{ class: 'trace', points }] })], 3 * HOUR_MS);
    const { cuMs, cuMsLow, cuMsHigh } = usedBy(world, 'ep-a');
    expect(cuMs / HOUR_MS).toBeCloseTo(1 + 1.5 + 2, 6);
    expect([cuMsLow, cuMsHigh].map((ms) => ms / HOUR_MS)).toEqual([3, 6]);
  });

  it.each<Load>([
    { class: 'office_users', cu: 2, utcOffsetHours: 1 },
    { class: 'night_batch', cu: 2, utcOffsetHours: -5 },
    { class: 'bursty_api', cu: 1, utcOffsetHours: 0 },
    { class: 'idle_in_transaction', hours: 4, utcOffsetHours: 2 },
    { class: 'cron_ping', cu: 0, everySeconds: 60 },
  ])('ask for the same at every instant, until the instant that they say: $class', (load) => {
    for (let ms = START_MS; ms < START_MS + 3 * DAY_MS; ms += 7 * 60_000 + 13) {
      const demand = demandAt(load, ms, 42);
      expect(demand.untilMs).toBeGreaterThan(ms);
      const later = Math.min(demand.untilMs - 1, ms + 50_000);
      expect(demandAt(load, later, 42)).toEqual(demand);
    }
  });

  it('use the same however often somebody looks', () => {
    const { projects } = generateFleet({ projects: 4, computesPerProject: 2, seed: 3, loads: true });
    const computes = projects.flatMap((project) => project.computes);
    const [once, often] = [live(computes, DAY_MS), live(computes, DAY_MS, 2000)];
    for (const { id } of computes) expect(usedBy(often, id)).toEqual(usedBy(once, id));
    expect(often.projects.get('shop')?.operations).toEqual(once.projects.get('shop')?.operations);
  });

  it('keep a replication sender busy for ever, so that the compute never sleeps', () => {
    const world = live([compute({ id: 'ep-a', load: [{ class: 'replication', cu: 0.2 }] })], DAY_MS);
    expect(usedBy(world, 'ep-a').causes).toMatchObject({ replication: expect.closeTo(DAY_MS, -4) });
  });
});

let running: TestEmulator | undefined;
afterEach(async () => {
  await running?.emulator.close();
  running = undefined;
});

async function start(fleet: Fleet, options: Parameters<typeof startTestEmulator>[0] | object = {}) {
  running = await startTestEmulator({ fleet, ...options });
  return running;
}

describe('the past of a fleet', () => {
  it('is lived through: operations and usage go together', async () => {
    const office: Load = { class: 'office_users', cu: 1, utcOffsetHours: 0 };
    const fleet = { ...fleetOf(compute({ id: 'ep-a', load: [office] })), historyMs: 7 * DAY_MS };
    const emulator = await start(fleet, { availabilityCheckMs: 0 });
    const { body } = await emulator.call('GET', '/projects/shop/operations?limit=1000');
    const oldest = body.operations.at(-1);
    expect(Date.parse(oldest.created_at)).toBeLessThan(START_MS - 6 * DAY_MS);
    const { body: usage } = await emulator.control('GET', '/state/usage');
    const starts = body.operations.filter(({ action }: { action: string }) => action === 'start_compute');
    expect(usage.computes[0].awake).toHaveLength(starts.length);
    const counted = usage.branches[0].quarters.reduce(
      (sum: number, one: { awake_seconds: number }) => sum + one.awake_seconds,
      0,
    );
    const { body: state } = await emulator.control('GET', '/state');
    expect(counted).toBeCloseTo(state.computes[0].active_seconds, 6);
  });

  it('can be written down, with actions that nothing here starts', async () => {
    const text = `
projects:
  - id: shop
    region_id: aws-eu-central-1
    pg_version: 17
    computes:
      - id: ep-a
        branch_id: br-a
        type: read_write
        min_cu: 0.25
        max_cu: 1
        suspend_timeout_seconds: 300
        state: idle
        load: [{ class: office_users, cu: 2 }]
        history:
          - { action: start_compute, created_at: 2026-11-01T08:00:00Z, duration_ms: 900 }
          - { action: tenant_detach, created_at: 2026-11-02T08:00:00Z, status: failed }`;
    const parsed = parseFleet(text);
    if (!parsed.ok) throw new Error(parsed.message);
    const emulator = await start(parsed.fleet);
    const { body } = await emulator.call('GET', '/projects/shop/operations?limit=1000');
    expect(body.operations.slice(-2)).toMatchObject([
      { action: 'tenant_detach', status: 'failed', created_at: '2026-11-02T08:00:00Z' },
      { action: 'start_compute', status: 'finished', total_duration_ms: 900 },
    ]);
  });
});

describe('what is not known of the service', () => {
  const resize = { endpoint: { autoscaling_limit_min_cu: 2, autoscaling_limit_max_cu: 4 } };

  it.each([
    ['stays', []],
    ['wakes', ['start_compute', 'suspend_compute']],
  ] as const)('an idle compute that gets a new size %s', async (idlePatch, actions) => {
    const emulator = await start(fleetOf(compute({ id: 'ep-a' })), { idlePatch, availabilityCheckMs: 0 });
    const { body } = await emulator.call('PATCH', '/projects/shop/endpoints/ep-a', resize);
    expect(body.operations.map(({ action }: { action: string }) => action)).toEqual(actions);
    emulator.pass(10_000);
    const { body: state } = await emulator.control('GET', '/state');
    expect(state.computes[0]).toMatchObject({ state: 'idle', min_cu: 2, active_seconds: actions.length > 0 ? 1 : 0 });
  });

  it.each([
    ['moves', true, true],
    ['stays', false, false],
    ['late', false, true],
  ] as const)('the project list shows a change of a compute: %s', async (projectUpdatedAt, atOnce, after30s) => {
    const emulator = await start(fleetOf(compute({ id: 'ep-a' })), { projectUpdatedAt, availabilityCheckMs: 0 });
    const shown = async () => (await emulator.call('GET', '/projects')).body.projects[0].updated_at;
    const before = await shown();
    emulator.pass(10_000);
    await emulator.call('PATCH', '/projects/shop/endpoints/ep-a', resize);
    expect((await shown()) !== before).toBe(atOnce);
    emulator.pass(30_000);
    expect((await shown()) !== before).toBe(after30s);
  });

  it('a check of the platform can start a compute that sleeps, which then sleeps again', async () => {
    const options = { checksWake: true, availabilityCheckMs: HOUR_MS };
    const emulator = await start(fleetOf(compute({ id: 'ep-a' })), options);
    emulator.pass(DAY_MS);
    const { body } = await emulator.call('GET', '/projects/shop/operations?limit=1000');
    const actions = new Set(body.operations.map(({ action }: { action: string }) => action));
    expect(actions).toEqual(new Set(['start_compute', 'check_availability', 'suspend_compute']));
  });
});
