/** A daemon that works without a pause, at speed: what it holds does not grow. Some seconds; with EBB_LONG=1 an hour. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { clockByTable } from '../../src/compose/run-daemon.ts';
import { endServer } from '../support/child-server.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { isLong, printSeed, SEED } from '../support/seed.ts';
import type { SoakMeasure, SoakOptions } from './soak-child.ts';

const CHILD = fileURLToPath(new URL('./soak-child.ts', import.meta.url));
const HOUR_MS = 3_600_000;
/** One for each second. */
const MEASURES = isLong ? 3600 : 18;
/** A boundary every half of an hour, which takes half of a second. */
const FACTOR = 3600;
const FROM_MS = Date.UTC(2026, 10, 23);

const POLICY = `version: 1
policies:
  - name: to-and-fro
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: { cron: "0 * * * *", for: 30m }, size: 1-2 }]
    otherwise: { size: 0.25, suspend_after: 5m }
`;

describeWith('redis-server', `a daemon that has worked ${isLong ? 'for an hour' : 'for a while'} at speed`, () => {
  it('holds no more memory and no more handles than at the start', { timeout: 2 * HOUR_MS }, async (test) => {
    printSeed();
    const redis = await startRedisServer();
    test.onTestFinished(() => redis.close());
    const folder = await makeFolder({ 'policy.yaml': POLICY, 'ebb.yaml': 'api_requests_per_minute: 100000\n' });
    test.onTestFinished(() => folder.remove());
    const table = [
      { realMs: 0, simulatedMs: FROM_MS },
      { realMs: 3 * HOUR_MS, simulatedMs: FROM_MS + 3 * HOUR_MS * FACTOR },
    ];
    const clock = { table, startedAtMs: Date.now() };
    const names = Array.from({ length: 20 }, (_, index) => [`web-${index}`, index % 4 ? {} : { state: 'active' }]);
    const platform = await startTestPlatform(Object.fromEntries(names), { clock: clockByTable(clock), seed: SEED });
    test.onTestFinished(() => platform.close());
    await platform.control('faults', { kind: 'status', status: 503, share: 0.02, seed: SEED });
    await platform.control('faults', { kind: 'hang_up', share: 0.01, seed: SEED });
    const env = {
      EBB_API_URL: platform.url,
      EBB_API_KEY: platform.apiKey,
      EBB_MODE: 'enforce',
      EBB_QUEUE_URL: redis.url,
      EBB_GROUP: 'soak',
      EBB_LISTEN: '127.0.0.1:0',
    };
    const measures = await measure({ env, folder: folder.path, clock }, (child) => test.onTestFinished(() => child()));

    expect((await platform.writes()).length).toBeGreaterThan(MEASURES);
    // What is compiled and remembered first is no leak.
    const warm = measures.slice(Math.floor(measures.length / 3));
    const [first, last] = [warm.slice(0, warm.length / 2), warm.slice(-warm.length / 2)];
    expect(least(last, 'heapBytes')).toBeLessThan(1.15 * most(first, 'heapBytes'));
    expect(least(last, 'handles')).toBeLessThanOrEqual(most(first, 'handles') + 2);
  });
});

async function measure(options: SoakOptions, onEnd: (end: () => Promise<void>) => void): Promise<SoakMeasure[]> {
  const args = ['--expose-gc', '--import', 'tsx', CHILD, JSON.stringify(options)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onEnd(() => endServer(child, 'SIGKILL'));
  const measures: SoakMeasure[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    measures.push(JSON.parse(line));
    if (measures.length === MEASURES) return measures;
  }
  throw new Error(`the daemon ended after ${measures.length} s`);
}

const most = (measures: readonly SoakMeasure[], field: keyof SoakMeasure) =>
  Math.max(...measures.map((one) => one[field]));
const least = (measures: readonly SoakMeasure[], field: keyof SoakMeasure) =>
  Math.min(...measures.map((one) => one[field]));
