import {
  type DaemonEvent,
  prepareEngine,
  type RunningDaemon,
  type RunOptions,
  runDaemon,
} from '../../compose/run-daemon.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
import { UserError } from '../fail.ts';
import { readVersion } from '../root.ts';
import type { DemoPlatform } from './platform.ts';

export interface DemoFlags {
  keep?: boolean;
  policies: string;
  listen?: string;
}

/** In real time: a simulated day has room for many more inventories than a real minute, and an hour passes in less than a second. */
const RHYTHM = {
  inventoryMs: 1_000,
  resyncMs: 1_000,
  waitingMs: 500,
  rulesMs: 2_000,
  samplingMs: 100,
  wasteMs: 60_000,
  usageMs: 60_000,
};

const GROUP = 'demo';
const USUAL_LISTEN = '127.0.0.1:9464';
const ANY_PORT = '127.0.0.1:0';

interface DemoDaemonOptions {
  flags: DemoFlags;
  folder: string;
  queueUrl: string;
  policies: PolicySet;
  platform: DemoPlatform;
  clock: NonNullable<RunOptions['clock']>;
  onEvent(event: DaemonEvent): void;
}

/** Lets the embedded engine make its folder, which takes seconds, before the day's time runs. */
export async function prepareQueue(url: string): Promise<void> {
  const prepared = await prepareEngine({ url, group: GROUP });
  if (!prepared.ok) throw new UserError(prepared.problem);
}

/** The daemon as `ebb run --mode enforce` starts it, on the embedded queue in a folder of the demo's own. */
export async function startDemoDaemon(options: DemoDaemonOptions): Promise<RunningDaemon> {
  const listen = options.flags.listen ?? USUAL_LISTEN;
  const usual = await start(options, listen);
  if (usual.ok) return usual.value;
  const other = options.flags.listen === undefined ? await start(options, ANY_PORT) : usual;
  if (!other.ok) throw new UserError(other.problem);
  return other.value;
}

async function start(options: DemoDaemonOptions, listen: string) {
  const { policies, clock, onEvent } = options;
  const settings = demoSettings({ ...options, listen });
  const version = readVersion();
  return runDaemon({ settings, policies, version, clock, rhythm: RHYTHM, logTo: process.stderr, onEvent });
}

/** As a user of the platform would set them. */
export function demoSettings({
  folder,
  queueUrl,
  platform,
  listen = ANY_PORT,
}: Pick<DemoDaemonOptions, 'folder' | 'queueUrl' | 'platform'> & { listen?: string }): Settings {
  const env = {
    EBB_API_URL: platform.url,
    EBB_API_KEY: platform.apiKey,
    EBB_MODE: 'enforce',
    EBB_QUEUE_URL: queueUrl,
    EBB_GROUP: GROUP,
    EBB_LISTEN: listen,
    EBB_LOG_LEVEL: 'error',
  };
  const read = readSettings({ env, cwd: folder });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  return read.settings;
}
