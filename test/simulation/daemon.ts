/** One whole daemon of a simulation: composed as `ebb run` composes it, on ports that the simulation answers. */

import { createRateBudget } from '../../src/adapters/control-api/rate-budget.ts';
import type { ProcessTelemetry } from '../../src/adapters/telemetry/telemetry.ts';
import { createStoredTimes } from '../../src/app/group/stored-times.ts';
import { daemonOperator } from '../../src/app/operator/daemon-operator.ts';
import { createOverrides } from '../../src/app/overrides.ts';
import { openControlApi } from '../../src/compose/control-api.ts';
import { type Closer, type DaemonParts, openParts } from '../../src/compose/daemon-parts.ts';
import { rulesOf } from '../../src/compose/rules-from-files.ts';
import { startParts } from '../../src/compose/run-daemon.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import { DEFAULT_RATE_LIMITS } from '../../src/domain/rate-budget/limits.ts';
import type { JobQueue } from '../../src/ports/job-queue.ts';
import type { Operator } from '../../src/ports/operator.ts';
import type { Sender } from '../../src/ports/outbox.ts';
import type { RulesReading, RulesSource } from '../../src/ports/rules.ts';
import type { StoredOverrides } from '../../src/ports/store.ts';
import type { Log } from '../../src/ports/telemetry.ts';
import { readSettings, type Settings } from '../../src/settings/settings.ts';
import { bookOf, wasReplaced } from './book.ts';
import { createLife, type Life } from './life.ts';
import { FILES, type FileName, parseTexts, pathOf, TEAM, warningsOf } from './policies.ts';
import { notePendingUnclear } from './records.ts';
import { rhythmOf } from './rhythm.ts';
import { createSaid, type Said } from './said.ts';
import { seriesOf } from './series.ts';
import { storeOf } from './stores.ts';
import { transportOf } from './transport.ts';
import type { World } from './world.ts';

/** A start or a stop that takes longer hangs. */
const LONGEST_STOP_MS = 30_000;

const RECEIVER: Receiver = {
  ...{ name: 'people', to: 'webhook', url: { from: 'text', text: 'http://127.0.0.1:9/' } },
  ...{ allowedOrigins: [], file: 'ebb.yaml', kinds: ['guard'], perHour: 1_000 },
};

export interface SimDaemon {
  index: number;
  life: Life;
  version: number;
  startedAtMs: number;
  /** True once its stop has begun: writes under way are finished, and then it ends. */
  readonly isStopping: boolean;
  /** What it says by its log and its gauges. */
  said: Said;
  /** Absent until it has started. */
  operator?: Operator;
  parts?: DaemonParts;
  kill(): void;
  stop(): Promise<void>;
  /** What SIGHUP does: the files count at once. */
  reload(): Promise<void>;
}

/** What outlives a daemon on its machine: the file of holds and freezes. */
export interface Machine {
  remembered: StoredOverrides | undefined;
  offsetMs: number;
}

export function settingsOf(world: World): Settings {
  const env = {
    ...{ EBB_API_URL: 'https://api.simulated.test/api/v2', EBB_API_KEY: world.platform.apiKey, EBB_MODE: 'enforce' },
    EBB_QUEUE_URL: 'redis://simulated.test:6379',
  };
  const read = readSettings({ env, cwd: '/' });
  if (!read.ok) throw new Error(read.problems.join('\n'));
  const { lowerWhen, cooldownMs } = world.plan.disruption;
  return {
    ...read.settings,
    teams: [TEAM],
    notify: { receivers: [RECEIVER] },
    disruption: {
      lower: { when: lowerWhen, atDeadline: 'apply' },
      ...{ cooldownMs, atOnce: 0.5, newlyDiscovered: 'act' as const },
    },
  };
}

/** Starts a daemon; `started` resolves when it runs, or has given up. */
export function startDaemon(
  world: World,
  machine: Machine,
  { index, version, settings }: { index: number; version: number; settings: Settings },
): { daemon: SimDaemon; started: Promise<void> } {
  const name = `d${index}`;
  const life = createLife(world.time, (error) => reportError(world, name, error));
  life.offsetMs = machine.offsetMs;
  life.offsetSinceMs = world.time.now();
  const said = createSaid(world, name);
  const telemetry = telemetryOf(world, name, said);
  const opened: Closer[] = [];
  const connected = world.broker.connect({
    clock: life.clock,
    onFailed: (queueName, job, error) => {
      world.note(`${name} job ${queueName}/${job.id} failed: ${error.message}`);
      reportError(world, name, error);
    },
  });
  const queue = queueOf(world, name, life, connected);
  const stopping = new AbortController();
  const daemon: SimDaemon = {
    ...{ index, life, version, startedAtMs: world.time.now(), said },
    get isStopping() {
      return stopping.signal.aborted;
    },
    kill() {
      if (!life.isKilled) notePendingUnclear(world);
      life.kill();
      world.broker.kill(connected);
    },
    reload: async () => {},
    async stop() {
      stopping.abort();
      const late = world.time.at(world.time.now() + LONGEST_STOP_MS, () => {
        if (!life.isKilled) world.violate('stops', `${name} does not stop`);
        daemon.kill();
      });
      for (const close of opened.splice(0).reverse()) await close();
      late();
      daemon.kill();
    },
  };

  async function start(): Promise<void> {
    const source = rulesSource(world, settings);
    const first = await source.read();
    if (!first.ok) return daemon.kill();
    const { policies } = first.rules;
    // Where no set is known to wait for, a daemon takes the files as they are.
    if (wasReplaced(world, world.plan.startMs)) bookOf(world).readAtStart.add(policies.hash);
    const clock = life.clock;
    const parts = await openParts(
      {
        ...{ settings, policies, clock, rhythm: rhythmOf(world.plan), decisionVersion: version },
        newId: () => world.newId(),
        machineMs: () => clock.now(),
        onEvent: (event) => {
          world.reach(`event ${event.kind}`);
          if (event.kind !== 'write_ended' || event.outcome !== 'applied') return;
          const { compute, latenessMs } = event;
          bookOf(world).ended.push({ computeId: compute.computeId, atMs: world.time.now(), latenessMs });
        },
      },
      telemetry,
      opened,
      async () => {
        const budget = createRateBudget({ budgets: world.budgets, perMinute: DEFAULT_RATE_LIMITS.perMinute, clock });
        const { metrics, hide } = telemetry;
        const transport = transportOf(world, daemon);
        const random = () => world.diceFor(`${name} random`).uniform();
        const api = openControlApi({
          settings,
          metrics,
          hide,
          budget,
          purpose: 'write',
          clock,
          random,
          transport,
          newId: () => world.newId(),
        });
        opened.push(() => api.close());
        const storedTimes = createStoredTimes({ clock, telemetry });
        const store = storedTimes.correcting(storeOf(world, name, life, daemon));
        const keep = async (known: StoredOverrides) => {
          machine.remembered = structuredClone(known);
        };
        return {
          ok: true,
          value: {
            ...{ api, store, storedTimes, engineName: 'simulated', hasRunHere: machine.remembered !== undefined },
            counters: { of: () => Promise.reject(new Error('there is no source')) as never, close: async () => {} },
            series: seriesOf(world, daemon),
            sender: senderOf(world, life),
            overrides: createOverrides({ telemetry, remembered: machine.remembered, save: keep }),
            openQueue: () => queue,
          },
        };
      },
    );
    if (!parts.ok) throw new Error(parts.problem);
    opened.push(() => queue.close(6_000));
    const started = await startParts(parts.value, {
      settings,
      source,
      signal: stopping.signal,
      version: `0.${version}.0`,
    });
    if (!started.ok) {
      world.note(`${name} does not start: ${started.problem}`);
      return daemon.kill();
    }
    opened.push(() => started.value.stop());
    daemon.parts = parts.value;
    daemon.reload = () => started.value.reload();
    daemon.operator = daemonOperator({
      ...parts.value,
      readiness: async () => ({ ready: true, checks: [] }) as never,
      metricsText: async () => ({ contentType: 'text/plain', body: '' }),
    });
    world.note(`${name} runs, version ${version}`);
  }

  const started = start().catch((error) => {
    if (!life.isKilled && !stopping.signal.aborted) world.note(`${name} does not start: ${(error as Error).message}`);
    reportError(world, name, error);
    daemon.kill();
  });
  return { daemon, started };
}

/** Whoever is told of what guards find. */
function senderOf(world: World, life: Life): Sender {
  return {
    async send(_receiver, { id }) {
      world.reach('port sender.send');
      await life.pass(latencyMs(world, 'sender'));
      world.note(`told: ${id}`);
      bookOf(world).messages.add(id);
      await life.pass(latencyMs(world, 'sender'));
      return { ok: true };
    },
    close: async () => {},
  };
}

/** The queue of one daemon, whose answers take their time. */
function queueOf(world: World, daemonName: string, life: Life, queue: JobQueue): JobQueue {
  const methods = Object.entries(queue).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      world.reach(`port queue.${name}`);
      await life.pass(latencyMs(world, `${daemonName} ${name} ${args[0]}`));
      const result = await (method as (...own: unknown[]) => Promise<unknown>)(...args);
      await life.pass(0);
      return result;
    },
  ]);
  return Object.fromEntries(methods);
}

/** Errors that no trouble of a port explains are faults of ebb. */
function reportError(world: World, name: string, error: unknown): void {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof TypeError || cause instanceof RangeError || cause instanceof ReferenceError)
      world.violate('no error of its own', `${name}: ${cause.stack?.split('\n').slice(0, 3).join(' ')}`);
  }
}

function telemetryOf(world: World, name: string, said: Said): ProcessTelemetry {
  const saying = (level: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    const { event = '', err } = fields as { event?: string; err?: unknown };
    world.note(`${name} ${event} ${message}`);
    world.seen.log.push(`${level} ${event} ${message}`);
    if (err !== undefined) reportError(world, name, err);
    said.line(level, fields, message);
  };
  const log: Log = { debug: () => {}, info: saying('info'), warn: saying('warn'), error: saying('error') };
  const nothing = () => {};
  const metrics: ProcessTelemetry['metrics'] = {
    increment(metric, labels) {
      if (metric === 'ebb_skipped_total') world.reach(`gate ${Reflect.get(labels, 'reason')}`);
    },
    set: said.set,
    clear: said.clear,
    observe: nothing,
  };
  return {
    log,
    metrics,
    hide: nothing,
    seriesFrom: nothing,
    text: async () => ({ contentType: 'text/plain', body: '' }),
  };
}

/** The rules as the files have them. A file that was changed in place may not be finished. */
function rulesSource({ files: { versions }, time }: World, settings: Settings): RulesSource {
  const seen = new Map<string, number>();
  const newest = () => FILES.map((name) => [name, versions[name].length] as const);
  return {
    async writtenAgoMs() {
      const inPlace = FILES.filter((name) => versions[name].at(-1)?.how === 'in_place');
      return new Map(inPlace.map((name) => [pathOf(name), time.now() - (versions[name].at(-1)?.atMs ?? 0)]));
    },
    changed: async () => newest().some(([name, count]) => seen.get(name) !== count),
    async read(): Promise<RulesReading> {
      const changed = newest().filter(([name, count]) => seen.has(name) && seen.get(name) !== count);
      for (const [name, count] of newest()) seen.set(name, count);
      const wasInPlace = ([name]: readonly [(typeof FILES)[number], number]) =>
        versions[name].at(-1)?.how === 'in_place';
      const changes = {
        inPlace: changed.filter(wasInPlace).map(([name]) => pathOf(name)),
        replaced: changed.filter((one) => !wasInPlace(one)).map(([name]) => pathOf(name)),
      };
      const text = (name: FileName) => versions[name].at(-1)?.text ?? '';
      const texts = { platform: text('platform'), web: text('web') };
      const loaded = parseTexts(texts);
      const usable = loaded.ok ? loaded : loaded.others;
      const problems = loaded.ok ? [] : loaded.problems.map(({ message }) => message);
      if (!usable) return { ok: false, problems, changes };
      const broken = new Map(loaded.ok ? [] : [[TEAM.name, problems]]);
      return {
        ok: true,
        rules: rulesOf(settings, usable.set),
        broken,
        warnings: warningsOf(texts),
        needRestart: [],
        changes,
      };
    },
  };
}

/** Most answers come at once, some a little later; with a trouble, seconds later. At the end, where nothing happens, all at once. */
export function latencyMs({ diceFor, plan, time }: World, who: string, by?: number): number {
  if (by === undefined && time.now() > plan.quietFromMs) return 0;
  const dice = diceFor(who);
  if (by !== undefined) return dice.between(0, 100 + by * 4_000);
  return dice.is(0.8) ? 0 : dice.between(1, 40);
}
