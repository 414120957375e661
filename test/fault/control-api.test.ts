import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { printSeed, SEED } from '../support/seed.ts';
import { CASE_MS, eventually, type FaultCase, sizedAt, startFaultCase, timeRecovery } from './fault-case.ts';

interface Storm {
  /** What the control API does. */
  it: string;
  faults: readonly Record<string, unknown>[];
}

/** Dice decide which requests are hit: of a storm a part gets through. */
const part = (share: number, nth: number) => ({ share, seed: SEED + nth });

const STORMS: Storm[] = [
  {
    it: 'answers 423, 429 and 503 more often than not',
    faults: [
      { kind: 'status', status: 423, method: 'PATCH', ...part(0.5, 1) },
      { kind: 'status', status: 429, retry_after_seconds: 1, ...part(0.3, 2) },
      { kind: 'status', status: 503, ...part(0.3, 3) },
    ],
  },
  {
    it: 'breaks down at half of what it is asked',
    faults: [
      { kind: 'status', status: 500, method: 'GET', ...part(0.5, 4) },
      { kind: 'status', status: 502, method: 'PATCH', count: 1, ...part(1, 5) },
    ],
  },
  {
    it: 'answers in halves, and with what is no JSON',
    faults: [
      { kind: 'hang_up', method: 'GET', ...part(0.3, 6) },
      { kind: 'hang_up', method: 'PATCH', ...part(0.5, 7) },
      { kind: 'wrong_json', ...part(0.3, 8) },
    ],
  },
];

describeWith('redis-server', 'while the control API', () => {
  let server: RedisServer;
  beforeAll(async () => {
    printSeed();
    server = await startRedisServer();
  });
  afterAll(() => server.close());

  const names = ['one', 'two', 'three', 'four'];
  const prepare = (test: Parameters<typeof startFaultCase>[0]['test']) =>
    startFaultCase({
      ...{ redisPort: server.port, test, policies: sizedAt('0.5') },
      computes: Object.fromEntries(names.map((name) => [name, {}])),
    });

  /** The daemon has given each of them a first size, and then clients have come. */
  async function settleAndWake(at: FaultCase): Promise<void> {
    await eventually(async () => {
      for (const name of names) expect(await at.record(name)).toMatchObject({ lastApplied: { maxCu: 0.5 } });
    });
    await Promise.all(names.map((name) => at.wake(name)));
  }

  async function expectChangedOnce(at: FaultCase): Promise<void> {
    await eventually(async () => {
      for (const name of names) {
        const { intent, openOperations, lastApplied } = (await at.record(name)) ?? {};
        expect([name, intent, openOperations, lastApplied?.maxCu]).toEqual([name, undefined, [], 2]);
      }
    });
    const toTheEnd = (await at.appliedMaxima()).filter(([, maxCu]) => maxCu === 2).map(([compute]) => compute);
    expect(toTheEnd.toSorted()).toEqual(names.map((name) => `ep-${name}`).toSorted());
    await at.expectNothingForbidden();
  }

  for (const storm of STORMS) {
    it.concurrent(`${storm.it}, a daemon goes on, and makes each change once`, { timeout: CASE_MS }, async (test) => {
      const at = await prepare(test);
      await at.start();
      await settleAndWake(at);
      for (const fault of storm.faults) await at.platform.control('faults', fault);
      await at.writePolicies(sizedAt('1-2'));
      const tried = async () => (await at.platform.writes()).length;
      await eventually(async () => expect(await tried()).toBeGreaterThan(names.length + 1));
      await at.platform.clearFaults();
      const recovered = timeRecovery(`the end of a storm: the control API ${storm.it}`);
      await expectChangedOnce(at);
      recovered();
    });
  }

  it.concurrent('is away, a daemon waits for it, and then makes each change once', {
    timeout: CASE_MS,
  }, async (test) => {
    const at = await prepare(test);
    const daemon = await at.start();
    await settleAndWake(at);
    at.api.shut();
    await at.writePolicies(sizedAt('1-2'));
    const said = (event: string) => daemon.logs().filter((line) => line.event === event);
    await eventually(() => expect(said('ebb.outage')).toHaveLength(1));
    at.api.open();
    const recovered = timeRecovery('the control API was away');
    await eventually(() => expect(said('ebb.recovered')).toHaveLength(1));
    await expectChangedOnce(at);
    recovered();
  });

  it.concurrent('lets operations hang, a daemon waits for their end, and sends nothing in the meantime', {
    timeout: CASE_MS,
  }, async (test) => {
    const at = await prepare(test);
    await at.start();
    await settleAndWake(at);
    await at.platform.control('faults', { kind: 'operation', action: 'apply_config', outcome: 'hang' });
    await at.writePolicies(sizedAt('1-2'));
    const looks = async () => (await at.platform.requests()).filter(({ path }) => path.includes('/operations'));
    await eventually(async () => expect(await at.appliedMaxima()).toHaveLength(2 * names.length));
    const before = (await looks()).length;
    await eventually(async () => expect((await looks()).length).toBeGreaterThan(before + 2 * names.length));
    expect(await at.appliedMaxima()).toHaveLength(2 * names.length);
    await at.platform.clearFaults();
    await expectChangedOnce(at);
  });
});
