import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { clockByTable } from '../../src/compose/run-daemon.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { boundarySoon, makeFolder, startTestPlatform } from '../support/platform.ts';

const WAIT = { timeout: 60_000, interval: 100 };
const HOUR_MS = 3_600_000;
const ALWAYS = `version: 1
policies:
  - name: sized
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: always, size: 4 }]
    otherwise: leave
`;

describe('an embedded store on which a daemon once ran by a clock that was', () => {
  it.each([
    ['an hour ahead', HOUR_MS],
    ['a year ahead', 365 * 24 * HOUR_MS],
  ])('%s: the next one decides by its own, says so, and is not ready for a while', async (_, aheadMs) => {
    const platform = await startTestPlatform({ one: {} }, { operationTimeMs: 100 });
    onTestFinished(() => platform.close());
    const folder = await makeFolder({ 'policy.yaml': ALWAYS });
    onTestFinished(() => folder.remove());
    const sizes = async () =>
      (await platform.writes()).map(
        ({ body }) => (body as { endpoint: { autoscaling_limit_max_cu?: number } }).endpoint.autoscaling_limit_max_cu,
      );
    const nowMs = Date.now();
    const clock = clockByTable({ table: [{ realMs: 0, simulatedMs: nowMs + aheadMs }], startedAtMs: nowMs });
    const wrong = await startTestDaemon({ platform, folder: folder.path, clock });
    onTestFinished(() => wrong.stop());
    await expect.poll(sizes, WAIT).toEqual([4]);
    await wrong.stop();

    await writeFile(join(folder.path, 'policy.yaml'), boundarySoon(10_000, 'size: 1-2'));
    const right = await startTestDaemon({ platform, folder: folder.path });
    onTestFinished(() => right.stop());
    await expect.poll(async () => (await sizes()).at(-1), WAIT).toBe(2);
    expect(right.logs.filter(({ event }) => event === 'ebb.stored_time_ahead')).toHaveLength(1);
    const answer = await fetch(`${right.url}/readyz`);
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('a stored time of ep-one is')]);
  });
});
