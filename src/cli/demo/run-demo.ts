import { setMaxListeners } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { clockByTable, type DaemonEvent } from '../../compose/run-daemon.ts';
import { settingsOf } from '../../domain/compute/compute.ts';
import { cuHours } from '../../domain/compute/cost.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { resolveDisruption } from '../../domain/policy/disruption.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { NO_SOURCES } from '../../policy/sources.ts';
import { loadOrFail } from '../or-fail.ts';
import { writeOut } from '../output.ts';
import { stopSignal } from '../signals.ts';
import { type ComputeDay, closingTable, type Range } from './closing-table.ts';
import { type DemoFlags, demoSettings, prepareQueue, startDemoDaemon } from './daemon.ts';
import { countingBy, POLICIES, writeHeadroomPolicy } from './demo-policies.ts';
import { type MeasuredDay, measureDay } from './measured-day.ts';
import { createNarrator, introduce, type Narrator } from './narrator.ts';
import { type ComputeUse, type DemoPlatform, SETTINGS_BEFORE, startPlatform } from './platform.ts';
import { readEstimate, savingLines } from './saving-lines.ts';
import { DAY_ENDS_MS, DAY_STARTS_MS, dayTimeTable, VISITS, visitStartsMs } from './working-day.ts';

/** The day's real duration, milliseconds. */
const DAY_REAL_MS = 44_000;

/** The day begins so much after its time does, which runs as real time until then: the daemon must be up by its first hour. */
const CURTAIN_MS = 2_500;

/** Cleanup steps, run in reverse order. */
type CleanUp = (() => Promise<unknown>)[];

/** Starts everything, lives through the day, shows the table, and leaves nothing behind, however it ends. */
export async function runDemo(flags: DemoFlags): Promise<void> {
  const interrupted = new AbortController();
  const stopped = stopSignal().then((signal) => interrupted.abort(signal));
  const cleanUp: CleanUp = [];
  try {
    await playDemo(flags, { cleanUp, signal: interrupted.signal, stopped });
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
  } finally {
    for (const undo of cleanUp.reverse()) await undo().catch(() => undefined);
  }
  if (interrupted.signal.reason === 'SIGINT' && !flags.keep) process.exitCode = 130;
}

interface Stage {
  cleanUp: CleanUp;
  signal: AbortSignal;
  stopped: Promise<void>;
}

async function playDemo(flags: DemoFlags, { cleanUp, signal, stopped }: Stage): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-demo-'));
  cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  // The reader of the output may go before the day ends (`| head`): then nothing but this runs.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const own = flags.policies === POLICIES ? [await writeHeadroomPolicy(folder)] : [];
  const policies = await loadOrFail([flags.policies, ...own], {
    knownSources: NO_SOURCES,
    teams: [],
    notify: { receivers: [] },
  });
  introduce(policies.policies);
  const queueUrl = `embedded:${join(folder, 'queue')}`;
  await prepareQueue(queueUrl);
  const table = timeTable(compilePolicies(policies));
  const clock = clockByTable({ table, startedAtMs: Date.now() + CURTAIN_MS });
  const managed = await startPlatform({ clock });
  cleanUp.push(() => managed.close());
  const untouched = await startPlatform({ clock });
  cleanUp.push(() => untouched.close());
  const narrator = createNarrator({ out: process.stdout, now: () => clock.now() });
  managed.onEvents(narrator.watch);
  const had = settingsLog(clock);
  const daemon = await startDemoDaemon({
    flags,
    folder,
    queueUrl,
    policies: countingBy(policies, managed.prometheusUrl),
    platform: managed,
    clock,
    onEvent(event) {
      narrator.effectivePolicies(event);
      had.add(event);
    },
  });
  cleanUp.push(() => daemon.stop());
  await liveTheDay({ platforms: [managed, untouched], clock, signal, onTick: narrator.narrateUntil });
  const estimate = await readEstimate(daemon.url);
  const settings = demoSettings({ folder, queueUrl, platform: managed });
  await managed.serveUsage(true);
  const measured = await measureDay({ settings, before: SETTINGS_BEFORE, hadOf: had.spansOf });
  await managed.serveUsage(false);
  await narrateTheEnd({ narrator, managed, untouched, estimate, measured });
  if (!flags.keep) return;
  writeOut(`\nStill up: ${daemon.url}/metrics. Ctrl-C ends it.\n`);
  await stopped;
}

/** Slow around every instant at which any policy changes, or at which a change that waits for sleep reaches its deadline. */
function timeTable(policies: CompiledPolicies) {
  const boundaries = new Set<number>([DAY_STARTS_MS]);
  const deadlines = new Set<number>();
  for (const [index, policy] of policies.set.policies.entries()) {
    const { deadlineMs = 0 } = wantsSizes(policy) ? resolveDisruption(policy.disruption).lower : {};
    let next = policies.nextChangeAfter(index, DAY_STARTS_MS);
    for (; next !== undefined && next < DAY_ENDS_MS; next = policies.nextChangeAfter(index, next)) {
      boundaries.add(next);
      deadlines.add(next + deadlineMs);
    }
  }
  return dayTimeTable({
    startMs: DAY_STARTS_MS,
    endMs: DAY_ENDS_MS,
    boundariesMs: [...boundaries],
    deadlinesMs: [...deadlines],
    realMs: DAY_REAL_MS,
  });
}

function wantsSizes(policy: Policy): boolean {
  return ruleOf(policy)
    .windows(policy)
    .some(({ size }) => size !== undefined);
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

interface End {
  narrator: Narrator;
  managed: DemoPlatform;
  untouched: DemoPlatform;
  estimate: Range;
  measured: MeasuredDay;
}

async function narrateTheEnd({ narrator, managed, untouched, estimate, measured }: End): Promise<void> {
  const [used, without] = await Promise.all([managed.use(), untouched.use()]);
  const withoutBy = new Map(without.map((use) => [use.compute_id, use]));
  const days = used.map((use) => dayOf(use, withoutBy.get(use.compute_id) ?? use, narrator));
  const sum = (uses: readonly ComputeUse[]) => uses.reduce((all, { cu_seconds }) => all + cu_seconds, 0) / 3600;
  writeOut(`\n${closingTable(days)}\n`);
  writeOut(
    '"As it was" is the same day, with the same clients, on a second platform that nobody touched. A compute uses between its\n' +
      'minimum and its maximum while it is awake; the control API does not report the size in between.\n\n',
  );
  writeOut(`${savingLines({ estimate, measured, truth: sum(without) - sum(used) })}\n`);
  writeOut(
    'In a real fleet there is no second platform: there a trial shows what was saved (ebb savings, docs/savings.md).\n',
  );
}

function dayOf(use: ComputeUse, without: ComputeUse, { changes }: Narrator): ComputeDay {
  return {
    project: use.project_id,
    changes: changes.get(use.compute_id) ?? 0,
    restarts: use.restarts,
    connectionsDropped: use.connections_dropped,
    cuHours: cuHours({ low: use.cu_seconds_low, high: use.cu_seconds_high }),
    cuHoursWithout: cuHours({ low: without.cu_seconds_low, high: without.cu_seconds_high }),
  };
}

interface DayTime {
  now(): number;
  sleepUntil(instantMs: number, signal: AbortSignal): Promise<void>;
}

/** Interval of readings of the platforms; events since the last one are printed then. Real milliseconds. */
const TICK_MS = 200;

/** Connects the day's clients to every platform alike, and reports the progress of the day. Resolves at its end. */
export async function liveTheDay(day: {
  platforms: readonly DemoPlatform[];
  clock: DayTime;
  signal: AbortSignal;
  onTick(instantMs: number): void;
}): Promise<void> {
  const { platforms, clock, signal, onTick } = day;
  // Every visit waits on it, and so does the reading.
  setMaxListeners(VISITS.length + 1, signal);
  const visits = VISITS.map(async (visit) => {
    await clock.sleepUntil(visitStartsMs(visit), signal);
    await Promise.all(platforms.map((platform) => platform.visit(visit)));
  });
  const ticks = (async () => {
    while (clock.now() < DAY_ENDS_MS) {
      await Promise.all(platforms.map((platform) => platform.use()));
      onTick(clock.now());
      await sleep(TICK_MS, undefined, { signal });
    }
  })();
  await Promise.all([...visits, ticks]);
}
