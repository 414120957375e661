/**
 * A daemon in a time of its own, alone in its process, so that what it holds can be measured: a line of JSON every second, after
 * a collection of garbage. Its only argument is JSON.
 */
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setInterval } from 'node:timers/promises';
import { clockByTable, runDaemon } from '../../src/compose/run-daemon.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { readSettings } from '../../src/settings/settings.ts';

export interface SoakOptions {
  env: Record<string, string>;
  folder: string;
  clock: Parameters<typeof clockByTable>[0];
}

export interface SoakMeasure {
  heapBytes: number;
  handles: number;
}

const { env, folder, clock } = JSON.parse(process.argv[2] ?? '') as SoakOptions;
const read = readSettings({ env, cwd: folder });
const loaded = await loadPolicySet({ paths: [join(folder, 'policy.yaml')], settings: DEFAULT_POLICY_SETTINGS });
if (!read.ok || !loaded.ok) throw new Error(JSON.stringify([read, loaded]));
const started = await runDaemon({
  settings: read.settings,
  policies: loaded.set,
  version: 'soak',
  clock: clockByTable(clock),
  rhythm: {
    inventoryMs: 200,
    resyncMs: 500,
    waitingMs: 300,
    rulesMs: 200,
    samplingMs: 1_000,
    guardsMs: 30_000,
    wasteMs: 60_000,
    usageMs: 60_000,
  },
  logTo: new Writable({ write: (_chunk, _encoding, done) => done() }),
});
if (!started.ok) throw new Error(started.problem);
for await (const _second of setInterval(1000)) {
  globalThis.gc?.();
  const measure: SoakMeasure = {
    heapBytes: process.memoryUsage().heapUsed,
    handles: process.getActiveResourcesInfo().length,
  };
  process.stdout.write(`${JSON.stringify(measure)}\n`);
}
