import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareEngine, type RunningDaemon, type RunOptions, runDaemon } from '../../compose/run-daemon.ts';
import type { ConnectionSource, PolicySet } from '../../domain/policy/policy.ts';
import { readSettings, type Settings } from '../../settings/settings.ts';
import { orFail, UserError } from '../fail.ts';
import { readVersion } from '../root.ts';
import type { DemoPlatform } from './platform.ts';

/** The intervals of the daemon's rounds in real milliseconds. They are short, since an hour of the day passes in less than a second. */
const RHYTHM = {
  inventoryMs: 1_000,
  resyncMs: 1_000,
  waitingMs: 500,
  rulesMs: 2_000,
  samplingMs: 100,
  guardsMs: 1_000,
  wasteMs: 60_000,
  usageMs: 60_000,
};

const GROUP = 'demo';
const USUAL_LISTEN = '127.0.0.1:9464';
const ANY_PORT = '127.0.0.1:0';

/** Makes the folder of the embedded engine before the day begins, since that takes seconds. */
export async function prepareQueue(folder: string): Promise<void> {
  orFail(await prepareEngine({ url: queueUrl(folder), group: GROUP }));
}

function queueUrl(folder: string): string {
  return `embedded:${join(folder, 'queue')}`;
}

/** The daemon of `ebb run --mode enforce`, on an embedded queue. */
export async function startDemoDaemon(
  { folder, platform, listen }: { folder: string; platform: DemoPlatform; listen: string | undefined },
  options: Pick<RunOptions, 'policies' | 'clock' | 'onEvent'>,
): Promise<RunningDaemon> {
  const start = (address: string) => {
    const settings = demoSettings(folder, platform, address);
    return runDaemon({ ...options, settings, version: readVersion(), rhythm: RHYTHM, logTo: process.stderr });
  };
  const usual = await start(listen ?? USUAL_LISTEN);
  return orFail(usual.ok || listen !== undefined ? usual : await start(ANY_PORT));
}

export function demoSettings(folder: string, platform: DemoPlatform, listen = ANY_PORT): Settings {
  const env = {
    EBB_API_URL: platform.url,
    EBB_API_KEY: platform.apiKey,
    EBB_MODE: 'enforce',
    EBB_QUEUE_URL: queueUrl(folder),
    EBB_GROUP: GROUP,
    EBB_LISTEN: listen,
    EBB_LOG_LEVEL: 'error',
  };
  const read = readSettings({ env, cwd: folder });
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  return read.settings;
}

/** A headroom policy for the demo. The policies that come with ebb have none, since it needs a source of connections, such as the emulator. */
const HEADROOM = `version: 1
timezone: Europe/Berlin
owner: platform

sources:
  emulator:
    from: prometheus
    url: http://127.0.0.1
    query: sum(neon_connection_counts{endpoint_id="$compute"})
    every: 30m # of a day that goes by in a minute

policies:
  - name: connection-headroom-web
    kind: headroom
    select:
      projects: ["demo-web-*"]
    connections: emulator
    target: 70%
    max_size: 8
    scale_down:
      after: 30m
`;

/** Returns the path of the policy file. */
export async function writeHeadroomPolicy(folder: string): Promise<string> {
  const file = join(folder, 'demo-headroom.yaml');
  await writeFile(file, HEADROOM);
  return file;
}

/**
 * Makes every Prometheus source ask this URL, since no other server knows the demo's computes. A source that was refused because of its own
 * URL is asked, too.
 */
export function countingBy(policies: PolicySet, url: string): PolicySet {
  const sources = new Map<string, ConnectionSource>();
  for (const [name, source] of policies.sources) {
    const { refused: _refused, ...asked } = source;
    sources.set(name, asked.from === 'prometheus' ? { ...asked, url } : source);
  }
  return { ...policies, sources };
}
