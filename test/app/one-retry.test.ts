import { expect, it } from 'vitest';
import { EIGHT, startShop } from './shop-at-eight.ts';

const SECOND_MS = 1_000;

/** Asks for a reconcile in each of the first seconds after the boundary, and ends 5 s after it. */
async function triggerOften({ clock, reconcile }: Awaited<ReturnType<typeof startShop>>): Promise<void> {
  for (let seconds = 1; seconds <= 4; seconds += 1) {
    // Not at an instant at which it is tried anyway.
    await clock.runTo(EIGHT + seconds * SECOND_MS + 10 * seconds);
    await reconcile('shop');
  }
  await clock.runTo(EIGHT + 5 * SECOND_MS);
}

it('a change that is refused because of an operation is tried every 5 s, however many triggers there were', async () => {
  const daemon = await startShop();
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 10 * SECOND_MS);
  await platform.control('faults', { kind: 'status', status: 423, method: 'PATCH' });
  await triggerOften(daemon);
  const before = (await platform.writes()).length;
  await clock.runTo(EIGHT + 65 * SECOND_MS);
  expect((await platform.writes()).length - before).toBe(12);
  await platform.clearFaults();
  await clock.runTo(EIGHT + 71 * SECOND_MS);
  expect((await platform.writes()).at(-1)?.status).toBe(200);
});

it('a project that another process has locked is tried every 500 ms, however many triggers there were', async () => {
  const lock = { isTaken: false, tries: 0 };
  const daemon = await startShop({
    withStore: (store) => ({
      ...store,
      async acquireLease(...args) {
        if (!lock.isTaken || !args[0].startsWith('project-')) return store.acquireLease(...args);
        lock.tries += 1;
        return undefined;
      },
    }),
  });
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 10 * SECOND_MS);
  lock.isTaken = true;
  await triggerOften(daemon);
  lock.tries = 0;
  await clock.runTo(EIGHT + 35 * SECOND_MS);
  expect(lock.tries).toBe(60);
  lock.isTaken = false;
  await clock.runTo(EIGHT + 36 * SECOND_MS);
  expect((await platform.writes()).map(({ status }) => status)).toEqual([200]);
});

it('a project that cannot be read is tried every 5 s, however many triggers there were', async () => {
  const daemon = await startShop();
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 10 * SECOND_MS);
  await platform.control('faults', { kind: 'status', status: 403, method: 'GET' });
  await triggerOften(daemon);
  const readings = async () => (await platform.requests()).filter(({ path }) => path.endsWith('/endpoints')).length;
  const before = await readings();
  await clock.runTo(EIGHT + 65 * SECOND_MS);
  expect((await readings()) - before).toBe(12);
  await platform.clearFaults();
  await clock.runTo(EIGHT + 71 * SECOND_MS);
  expect((await platform.writes()).map(({ status }) => status)).toEqual([200]);
});
