import { setMaxListeners } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { clockByTable, type DaemonEvent } from '../../compose/run-daemon.ts';
import { settingsOf } from '../../domain/compute/compute.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { sum } from '../../domain/sum.ts';
import { NO_SOURCES } from '../../policy/sources.ts';
import { loadPoliciesOrFail } from '../or-fail.ts';
import { writeOut } from '../output.ts';
import { stopSignal } from '../signals.ts';
import { closingTable, readEstimate, savingLines } from './closing.ts';
import { countingBy, demoSettings, prepareQueue, startDemoDaemon, writeHeadroomPolicy } from './daemon.ts';
import { measureDay } from './measured-day.ts';
import { createNarrator, introduce } from './narrator.ts';
import { type ComputeUse, type DemoPlatform, SETTINGS_BEFORE, startPlatform } from './platform.ts';
import { DAY_ENDS_MS, DAY_STARTS_MS, dayTimeTable, VISITS, visitStartsMs } from './working-day.ts';

export interface DemoFlags {
  keep?: boolean;
  policies: string;
  listen?: string;
}

/** The demo's day begins this long after the start, so that the daemon runs by its first hour. Real milliseconds. */
const DAY_BEGINS_AFTER_MS = 2_500;

type CleanUp = (() => Promise<unknown>)[];

/** Plays the demo. Removes everything that it made, also after an error or an interrupt. */
export async function runDemo(flags: DemoFlags, { withHeadroom }: { withHeadroom: boolean }): Promise<void> {
  const interrupted = new AbortController();
  const stopped = stopSignal().then((signal) => interrupted.abort(signal));
  const cleanUp: CleanUp = [];
  try {
    await playDemo(flags, { withHeadroom, cleanUp, signal: interrupted.signal, stopped });
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
  } finally {
    for (const undo of cleanUp.reverse()) await undo().catch(() => undefined);
  }
  if (interrupted.signal.reason === 'SIGINT' && !flags.keep) process.exitCode = 130;
}

interface DemoRun {
  withHeadroom: boolean;
  cleanUp: CleanUp;
  signal: AbortSignal;
  stopped: Promise<void>;
}

async function playDemo(flags: DemoFlags, { withHeadroom, cleanUp, signal, stopped }: DemoRun): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-demo-'));
  cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  // If the reader of the output ends first (`| head`), the process exits at once, and `cleanUp` does not run.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const headroom = withHeadroom ? [await writeHeadroomPolicy(folder)] : [];
  const { policies } = await loadPoliciesOrFail([flags.policies, ...headroom], {
    knownSources: NO_SOURCES,
    teams: [],
    notify: { receivers: [] },
  });
  introduce(policies.policies);
  await prepareQueue(folder);
  const clock = clockByTable({
    table: dayTimeTable(compilePolicies(policies)),
    startedAtMs: Date.now() + DAY_BEGINS_AFTER_MS,
  });
  const managed = await startPlatform({ clock });
  cleanUp.push(() => managed.close());
  const untouched = await startPlatform({ clock });
  cleanUp.push(() => untouched.close());
  const narrator = createNarrator(() => clock.now());
  managed.onEvents(narrator.tellPlatformEvents);
  const settingsHistory = settingsLog(clock);
  const daemon = await startDemoDaemon(
    { folder, platform: managed, listen: flags.listen },
    {
      policies: countingBy(policies, managed.prometheusUrl),
      clock,
      onEvent(event) {
        narrator.tellDaemonEvent(event);
        settingsHistory.add(event);
      },
    },
  );
  cleanUp.push(() => daemon.stop());
  await playDay({ platforms: [managed, untouched], clock, signal, onTick: narrator.narrateUntil });
  const estimate = await readEstimate(daemon.url);
  await managed.serveUsage(true);
  const measured = await measureDay(demoSettings(folder, managed), settingsHistory.spansOf);
  await managed.serveUsage(false);
  const [used, without] = await Promise.all([managed.use(), untouched.use()]);
  const cuHoursOf = (uses: readonly ComputeUse[]) => sum(uses.map(({ cu_seconds }) => cu_seconds)) / 3600;
  writeOut(`
${closingTable(used, without, narrator.changes)}
"As it was" is the same day, with the same clients, on a second platform that nobody touched. A compute uses between its
minimum and its maximum while it is awake; the control API does not report the size in between.

${savingLines(estimate, measured, cuHoursOf(without) - cuHoursOf(used))}
In a real fleet there is no second platform: there a trial shows what was saved (ebb savings, docs/savings.md).
`);
  if (!flags.keep) return;
  writeOut(`\nStill up: ${daemon.url}/metrics. Ctrl-C ends it.\n`);
  await stopped;
}

/** Logs the settings of each compute as the daemon changes them. */
function settingsLog(clock: DayTime) {
  const changes = new Map([...SETTINGS_BEFORE].map(([id, settings]) => [id, [{ ...settings, fromMs: DAY_STARTS_MS }]]));
  return {
    add(event: DaemonEvent): void {
      if (event.kind !== 'write_ended' || event.outcome !== 'applied') return;
      const settings = settingsOf({ ...event.compute, ...event.action.fields });
      changes.get(event.compute.computeId)?.push({ ...settings, fromMs: clock.now() });
    },
    spansOf(computeId: string) {
      const own = changes.get(computeId) ?? [];
      return own.map((one, index) => ({ ...one, toMs: own[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY }));
    },
  };
}

interface DayTime {
  now(): number;
  sleepUntil(instantMs: number, signal: AbortSignal): Promise<void>;
}

/** The interval at which the time of the platforms advances and their events are printed. Real milliseconds. */
const TICK_MS = 200;

/** Connects the day's clients to every platform alike, and reports the progress of the day. Resolves at its end. */
async function playDay(day: {
  platforms: readonly DemoPlatform[];
  clock: DayTime;
  signal: AbortSignal;
  onTick(instantMs: number): void;
}): Promise<void> {
  const { platforms, clock, signal, onTick } = day;
  // Each visit, and the loop of ticks, adds a listener to the signal.
  setMaxListeners(VISITS.length + 1, signal);
  const visits = VISITS.map(async (visit) => {
    await clock.sleepUntil(visitStartsMs(visit), signal);
    await Promise.all(platforms.map((platform) => platform.visit(visit)));
  });
  const ticks = (async () => {
    while (clock.now() < DAY_ENDS_MS) {
      // Reading a platform advances its time, which causes its events.
      await Promise.all(platforms.map((platform) => platform.use()));
      onTick(clock.now());
      await sleep(TICK_MS, undefined, { signal });
    }
  })();
  await Promise.all([...visits, ticks]);
}
