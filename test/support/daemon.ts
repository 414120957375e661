/** A whole daemon in this process, on an embedded engine, against a test platform. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { request } from 'undici';
import { expect } from 'vitest';
import { rulesFromFiles } from '../../src/compose/rules-from-files.ts';
import {
  clockByTable,
  type DaemonEvent,
  type RunningDaemon,
  type RunOptions,
  runDaemon,
} from '../../src/compose/run-daemon.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { NO_SOURCES } from '../../src/policy/sources.ts';
import { readSettings } from '../../src/settings/settings.ts';
import type { LogLine } from './ebb-process.ts';
import { boundarySoon, type Platform, prepareQueue } from './platform.ts';

export interface TestDaemon extends RunningDaemon {
  events: DaemonEvent[];
  /** What it has logged so far. */
  logs: LogLine[];
}

export interface TestDaemonOptions {
  platform: Platform;
  /** Holds `policy.yaml`, and the queue. */
  folder: string;
  clock?: RunOptions['clock'];
  env?: Record<string, string>;
  /** Takes up changes of `policy.yaml`. */
  reloads?: boolean;
  accept?: string;
  /** How often it looks which projects it is due to look for waste in, in real milliseconds; a minute if it is left out. */
  wasteMs?: number;
  /** The same for new usage and for who owns it. */
  usageMs?: number;
  /** Between two lists of projects, in real milliseconds; 200 if it is left out. */
  inventoryMs?: number;
  /** Hears of each event when it happens, besides `events`. */
  onEvent?: (event: DaemonEvent) => void;
}

export async function startTestDaemon(options: TestDaemonOptions): Promise<TestDaemon> {
  const { platform, folder, clock, env = {}, reloads = false, accept } = options;
  const queue =
    env.EBB_QUEUE_URL === undefined ? await prepareQueue(folder) : { url: env.EBB_QUEUE_URL, group: 'test' };
  const given = {
    EBB_API_URL: platform.url,
    EBB_API_KEY: platform.apiKey,
    EBB_MODE: 'enforce',
    EBB_QUEUE_URL: queue.url,
    EBB_GROUP: queue.group,
    EBB_LISTEN: '127.0.0.1:0',
    EBB_POLICIES: join(folder, 'policy.yaml'),
    ...env,
  };
  const readAgain = () => readSettings({ env: given, cwd: folder });
  const read = readAgain();
  const knownSources = read.ok ? read.settings.knownSources : NO_SOURCES;
  const loaded = await loadPolicySet({
    paths: [join(folder, 'policy.yaml')],
    settings: { ...DEFAULT_POLICY_SETTINGS, ...(knownSources && { knownSources }) },
  });
  if (!read.ok || !loaded.ok) throw new Error(JSON.stringify([read, loaded]));
  const { settings } = read;
  const configFile = join(folder, 'ebb.yaml');
  const events: DaemonEvent[] = [];
  const logs: LogLine[] = [];
  const started = await runDaemon({
    settings,
    policies: loaded.set,
    version: 'test',
    rhythm: {
      inventoryMs: options.inventoryMs ?? 200,
      resyncMs: 500,
      waitingMs: 300,
      rulesMs: 200,
      samplingMs: 1_000,
      guardsMs: 1_000,
      wasteMs: options.wasteMs ?? 60_000,
      usageMs: options.usageMs ?? 60_000,
    },
    logTo: new Writable({
      write(chunk, _encoding, done) {
        logs.push(JSON.parse(String(chunk)));
        done();
      },
    }),
    accept,
    ...(reloads && { source: rulesFromFiles({ readSettings: readAgain, settings, configFile, cwd: folder }) }),
    onEvent: (event) => {
      events.push(event);
      options.onEvent?.(event);
    },
    ...(clock && { clock }),
  });
  if (!started.ok) throw new Error(started.problem);
  return { ...started.value, events, logs };
}

/**
 * Writes a policy whose window opens so soon, once the daemons (with `reloads`) have met so many computes under one that opens in an
 * hour: an active compute that they meet after the boundary keeps what it has until the next.
 */
export async function openOnceMet(
  folder: string,
  daemons: readonly TestDaemon[],
  { computes, inMs, token }: { computes: number; inMs: number; token?: string | undefined },
): Promise<void> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const met = async () => {
    const answer = await request(`${daemons[0]?.url}/api/v1/computes`, { headers });
    const known = (await answer.body.json()) as { computes: { baseline: object | null }[] };
    return known.computes.filter(({ baseline }) => baseline !== null).length;
  };
  await expect.poll(met, { timeout: 60_000 }).toBe(computes);
  await writeFile(join(folder, 'policy.yaml'), boundarySoon(inMs));
  await Promise.all(daemons.map((daemon) => daemon.reload()));
}

/** Time from now on, so many times as fast, for platform and daemon alike; for a simulated day at most. */
export function fastClock(factor: number): NonNullable<RunOptions['clock']> {
  const nowMs = Date.now();
  const dayMs = 24 * 3_600_000;
  return clockByTable({
    table: [
      { realMs: 0, simulatedMs: nowMs },
      { realMs: dayMs / factor, simulatedMs: nowMs + dayMs },
    ],
  });
}
