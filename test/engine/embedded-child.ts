/**
 * A daemon's part in one process: opens the embedded engine in the folder it is told, stores a record, and works a job that
 * never ends, so that a test can kill it in the middle. Says `working` on stdout when it has come so far, and what was wrong
 * otherwise.
 */
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { createJobQueue } from '../../src/adapters/queue/job-queue.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { memoryLog } from '../support/memory-log.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
/** Longer than any test, and no longer than a lease that a right clock has given. */
const LEASE_MS = 4 * 60_000;

const [url = ''] = process.argv.slice(2);
const log = memoryLog();
const opened = await openEngine({ url, group: 'test', log });
if (!opened.ok) {
  process.stdout.write(`${opened.error.message}\n`);
  process.exit(1);
}
const { engine } = opened;
const store = await createStore({ engine, log });
const lease = await store.acquireLease('p-1', 'child', LEASE_MS);
if (lease === undefined) throw new Error('the lease is held');
await store.putRecord('p-1', 'c-1', {
  baseline: { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300 },
  firstSeenAtMs: 1,
  lastApplied: {},
  lastDecidedAtMs: 2,
  openOperations: [],
}, lease); // biome-ignore format: one call
const recovery = { lockDurationMs: 400, stalledIntervalMs: 200 };
const queue = createJobQueue({ engine, log, clock: systemClock(), onFailed: () => {}, recovery });
await queue.addAt('boundaries', { id: 'b-later', atMs: Date.now() + HOUR_MS, data: { instantMs: 7 } });
// Nobody works on the first; the other runs once, so that its next run is a delayed one.
await queue.addAt('operations', { id: 'o-soon', atMs: Date.now() + SECOND_MS, data: { projectId: 'p-1' } });
await queue.every('inventory', SECOND_MS);
await new Promise<void>((resolve, reject) => {
  const handler = async () => {
    resolve();
    return { kind: 'done' as const };
  };
  queue.work('inventory', handler, { concurrency: 1 }).catch(reject);
});
await queue.work(
  'reconcile',
  ({ data }) => {
    process.stdout.write(`working ${data.projectId}\n`);
    return new Promise(() => {});
  },
  { concurrency: 1 },
);
await queue.add('reconcile', { key: 'p-1', data: { projectId: 'p-1' } });
