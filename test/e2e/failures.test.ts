import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fastClock, startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { boundarySoon, makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';

/** Wants 1–2 CU of a sleeping compute that has 0.25. */
const POLICY = `version: 1
policies:
  - name: bigger
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: always, size: 1-2 }]
    otherwise: leave
`;

/** A platform and a daemon in one fast time; `before` runs while the platform stands alone. */
async function start(options: {
  factor: number;
  policy?: string;
  maxCu?: number;
  before?: (platform: Platform) => Promise<void>;
}): Promise<{ platform: Platform; daemon: TestDaemon; become: (policy: (nowMs: number) => string) => Promise<void> }> {
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  await prepareQueue(folder.path);
  await writeFile(join(folder.path, 'policy.yaml'), options.policy ?? POLICY);
  const clock = fastClock(options.factor);
  const platform = await startTestPlatform({ one: { maxCu: options.maxCu ?? 0.25 } }, { clock });
  onTestFinished(() => platform.close());
  await options.before?.(platform);
  const daemon = await startTestDaemon({ platform, folder: folder.path, clock, reloads: true });
  onTestFinished(() => daemon.stop());
  const become = async (policy: (nowMs: number) => string) => {
    await writeFile(join(folder.path, 'policy.yaml'), policy(clock.now()));
    await daemon.reload();
  };
  return { platform, daemon, become };
}

const outcomes = ({ events }: TestDaemon) =>
  events.flatMap((event) => (event.kind === 'write_ended' ? [event.outcome] : []));

async function expectMoreReconciles(platform: Platform, count: number): Promise<void> {
  const looks = async () => (await platform.requests()).filter(({ method }) => method === 'GET').length;
  const before = await looks();
  await expect.poll(looks, { timeout: 60_000 }).toBeGreaterThan(before + count);
}

async function metric(daemon: TestDaemon, series: string): Promise<number> {
  const { body } = await request(`${daemon.url}/metrics`);
  const line = (await body.text()).split('\n').find((text) => text.startsWith(`${series} `));
  return Number(line?.slice(series.length));
}

describe('a change that the control API', () => {
  it('takes long to answer is not sent again by a reconcile in the meantime', async () => {
    const { platform, daemon } = await start({
      factor: 1,
      before: (platform) => platform.control('faults', { kind: 'latency', ms: 1500, method: 'PATCH' }),
    });
    await expect.poll(() => outcomes(daemon), { timeout: 60_000 }).toContain('applied');
    await expectMoreReconciles(platform, 2);
    expect(await platform.writes()).toHaveLength(1);
  });

  it('breaks down at every time counts as failed, and after three times the compute is degraded', async () => {
    const { platform, daemon } = await start({
      factor: 60,
      before: (platform) => platform.control('faults', { kind: 'status', status: 500, method: 'PATCH' }),
    });
    await expect.poll(() => daemon.events.map(({ kind }) => kind), { timeout: 60_000 }).toContain('degraded');
    expect(outcomes(daemon)).toEqual(['unknown', 'unknown', 'unknown']);
    expect(await platform.writes()).toHaveLength(3);
  });

  it('answers with 503 is tried again until it succeeds, and does not count against the compute', async () => {
    const { platform, daemon } = await start({
      factor: 60,
      before: (platform) => platform.control('faults', { kind: 'status', status: 503, method: 'PATCH', count: 2 }),
    });
    await expect.poll(() => outcomes(daemon), { timeout: 60_000 }).toContain('applied');
    const answered = (await platform.writes()).map(({ status }) => status);
    expect(answered.filter((status) => status === 200)).toHaveLength(1);
  });

  it('refuses twice is not sent again and again, but once an hour: until then the compute is degraded', async () => {
    const { platform, daemon } = await start({
      factor: 100,
      before: (platform) => platform.control('faults', { kind: 'status', status: 412, method: 'PATCH' }),
    });
    await expect.poll(() => daemon.events.map(({ kind }) => kind), { timeout: 60_000 }).toContain('degraded');
    await expectMoreReconciles(platform, 2);
    expect(outcomes(daemon)).toEqual(['refused', 'refused']);
    expect(await metric(daemon, 'ebb_computes{status="degraded"}')).toBe(1);
    await platform.clearFaults();
    await expect.poll(() => outcomes(daemon), { timeout: 60_000 }).toEqual(['refused', 'refused', 'applied']);
    expect(await metric(daemon, 'ebb_computes{status="degraded"}')).toBe(0);
  });

  it('locks by an operation of somebody else is made when that ends', async () => {
    const { platform, daemon } = await start({
      factor: 10,
      before: async (platform) => {
        await platform.control('faults', { kind: 'status', status: 423, method: 'PATCH', count: 2 });
      },
    });
    await expect.poll(() => outcomes(daemon), { timeout: 60_000 }).toEqual(['locked', 'locked', 'applied']);
    expect((await platform.writes()).map(({ status }) => status)).toEqual([423, 423, 200]);
  });

  it('applies, but whose answer breaks off, is found in the compute and not sent again', async () => {
    const { platform, daemon } = await start({
      factor: 10,
      before: (platform) => platform.control('faults', { kind: 'hang_up', method: 'PATCH', count: 1 }),
    });
    await expect.poll(() => outcomes(daemon), { timeout: 60_000 }).toEqual(['unknown']);
    await expectMoreReconciles(platform, 2);
    expect(await platform.writes()).toHaveLength(1);
  });
});

describe('an operation that', () => {
  /** Small now, larger from a boundary on; by then clients are connected, so that the change starts operations. */
  async function startWithClients(outcome: 'fail' | 'hang'): Promise<{ platform: Platform; daemon: TestDaemon }> {
    const fault = { kind: 'operation', action: 'apply_config', outcome };
    const started = await start({ factor: 200, policy: boundarySoon(20 * 3_600_000), maxCu: 0.5 });
    await expect.poll(() => outcomes(started.daemon), { timeout: 60_000 }).toEqual(['applied']);
    await started.platform.control('faults', fault);
    await started.platform.control('computes/ep-one/connect', { connections: 2, for_seconds: 80_000, reconnect: true });
    await started.become((nowMs) => boundarySoon(nowMs - Date.now() + 30 * 60_000));
    return started;
  }

  it('fails is asked for again after growing waits; after three failures the compute is degraded', async () => {
    const { platform, daemon } = await startWithClients('fail');
    await expect.poll(() => daemon.events.map(({ kind }) => kind), { timeout: 60_000 }).toContain('degraded');
    const failed = daemon.events.filter(
      (event) => event.kind === 'operation_ended' && event.operation.status === 'failed',
    );
    expect(failed).toHaveLength(3);
    expect(await platform.writes()).toHaveLength(4);
  });

  it('never ends counts as failed after ten minutes, and the compute is left alone while it runs', async () => {
    const { platform, daemon } = await startWithClients('hang');
    const ended = () => daemon.events.filter(({ kind }) => kind === 'operation_ended');
    await expect.poll(ended, { timeout: 60_000 }).not.toEqual([]);
    const waitsFor = () =>
      daemon.events.flatMap((event) => (event.kind === 'held_back' ? [event.plan.waiting.at(-1)?.gate.code] : []));
    await expect.poll(waitsFor, { timeout: 60_000 }).toContain('operation_running');
    expect(await platform.writes()).toHaveLength(2);
  });
});
