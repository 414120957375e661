import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoPlatform } from './platform.ts';
import { DAY_ENDS_MS, VISITS, visitStartsMs } from './working-day.ts';

interface DayTime {
  now(): number;
  sleepUntil(instantMs: number, signal: AbortSignal): Promise<void>;
}

/** Between two looks at the platforms: what happened since is told then. Real milliseconds. */
const LOOK_MS = 200;

/** Lets the day's clients come to every platform alike, and tells how far the day is. Resolves at its end. */
export async function liveTheDay(day: {
  platforms: readonly DemoPlatform[];
  clock: DayTime;
  signal: AbortSignal;
  onLook(instantMs: number): void;
}): Promise<void> {
  const { platforms, clock, signal, onLook } = day;
  // Every visit waits on it, and so does the look.
  setMaxListeners(VISITS.length + 1, signal);
  const visits = VISITS.map(async (visit) => {
    await clock.sleepUntil(visitStartsMs(visit), signal);
    await Promise.all(platforms.map((platform) => platform.visit(visit)));
  });
  const looks = (async () => {
    while (clock.now() < DAY_ENDS_MS) {
      await Promise.all(platforms.map((platform) => platform.use()));
      onLook(clock.now());
      await sleep(LOOK_MS, undefined, { signal });
    }
  })();
  await Promise.all([...visits, looks]);
}
