import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { hourIn } from '../fault/fault-case.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';

const WAIT = { timeout: 60_000, interval: 50 };

it('a compute that wakes up after it was read for a boundary is not lowered, and its clients stay connected', async () => {
  const size = { minCu: 1, maxCu: 2 };
  const platform = await startTestPlatform({ wakes: size, sleeps: size });
  onTestFinished(() => platform.close());
  const folder = await makeFolder();
  onTestFinished(() => folder.remove());
  await prepareQueue(folder.path);
  const { startMs, at } = hourIn(25_000);
  const policy = `version: 1
policies:
  - name: less
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: ${at}, size: 0.25 }]
    otherwise: leave
`;
  await writeFile(join(folder.path, 'policy.yaml'), policy);
  const daemon = await startTestDaemon({ platform, folder: folder.path });
  onTestFinished(() => daemon.stop());

  // Boundaries are prepared up to 5 s before.
  const readAhead = async () =>
    (await platform.requests()).filter(
      ({ at, path }) => Date.parse(at) > startMs - 4_900 && path.includes('/projects/wakes/endpoints'),
    );
  await expect.poll(readAhead, WAIT).not.toHaveLength(0);
  await platform.control('computes/ep-wakes/connect', { connections: 2 });
  expect(Date.now()).toBeLessThan(startMs);

  const patched = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1));
  await expect.poll(patched, WAIT).toContain('ep-sleeps');
  const waiting = () =>
    daemon.events.flatMap((event) =>
      event.kind === 'held_back' && event.compute.computeId === 'ep-wakes'
        ? event.plan.waiting.map(({ gate }) => gate.code)
        : [],
    );
  await expect.poll(waiting, WAIT).toContain('waiting_for_idle');
  expect(await patched()).toEqual(['ep-sleeps']);
});
