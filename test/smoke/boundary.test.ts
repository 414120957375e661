import { describe, expect, it, onTestFinished } from 'vitest';
import { openOnceMet, startTestDaemon } from '../support/daemon.ts';
import { boundarySoon, makeFolder, startTestPlatform } from '../support/platform.ts';

describe('a boundary', () => {
  it('changes each selected compute exactly once, and later passes change nothing', async () => {
    const platform = await startTestPlatform(
      {
        one: {},
        two: {},
        three: { state: 'active', connections: 3 },
        four: { state: 'active', connections: 1 },
        five: { maxCu: 2, minCu: 1 },
      },
      { operationTimeMs: 300 },
    );
    onTestFinished(() => platform.close());
    const folder = await makeFolder({ 'policy.yaml': boundarySoon(3_600_000) });
    onTestFinished(() => folder.remove());
    const daemon = await startTestDaemon({ platform, folder: folder.path, reloads: true });
    onTestFinished(() => daemon.stop());
    await openOnceMet(folder.path, [daemon], { computes: 5, inMs: 6_000 });

    const writes = async () =>
      (await platform.writes()).map(({ path, body }) => [path.split('/').at(-1), JSON.stringify(body)]);
    await expect.poll(writes, { timeout: 50_000, interval: 100 }).toHaveLength(6);
    const followed = () => daemon.events.filter(({ kind }) => kind === 'operation_ended').length;
    await expect.poll(followed, { timeout: 50_000 }).toBe(6);
    const rounds = async () =>
      (await platform.requests()).filter(({ path }) => path.startsWith('/api/v2/projects?')).length;
    const roundsBefore = await rounds();
    await expect.poll(rounds, { timeout: 50_000 }).toBeGreaterThan(roundsBefore + 6);
    await daemon.stop();

    const again = await startTestDaemon({ platform, folder: folder.path });
    onTestFinished(() => again.stop());
    const roundsAgain = await rounds();
    await expect.poll(rounds, { timeout: 50_000 }).toBeGreaterThan(roundsAgain + 6);

    const wanted = '{"endpoint":{"autoscaling_limit_min_cu":1,"autoscaling_limit_max_cu":2}}';
    const toTheWindow = (await writes()).filter(([, body]) => body === wanted).map(([compute]) => compute);
    expect(toTheWindow.toSorted()).toEqual(['ep-five', 'ep-four', 'ep-one', 'ep-three', 'ep-two']);
    // Before the boundary the sleeping compute that was too large went down at once; nothing else ever happened.
    expect(await writes()).toHaveLength(6);
  });
});
