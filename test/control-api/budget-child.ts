/**
 * A daemon's part in one process: reads computes as fast as the shared budget lets it, until SIGTERM. Arguments: URL of the
 * API, URL of the engine.
 */
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { createGroupBudget } from '../../src/adapters/control-api/group-budget.ts';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { limitsOf } from '../../src/domain/rate-budget/limits.ts';
import { REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { recordingMetrics } from './samples.ts';

const CONCURRENT = 8;

const [baseUrl = '', engineUrl = ''] = process.argv.slice(2);
const opened = await openEngine({ url: engineUrl, group: 'test', log: memoryLog() });
if (!opened.ok) throw new Error(opened.error.message);
const api = createControlApi({
  baseUrl,
  accounts: [{ name: 'main', key: () => 'test-key' }],
  metrics: recordingMetrics(),
  budget: await createGroupBudget({ engine: opened.engine, limits: limitsOf(700, 0), clock: REAL.clock }),
  ...REAL,
});

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
process.stdout.write('ready\n');
async function work(): Promise<void> {
  const project = { account: 'main', projectId: 'shop', name: 'shop' };
  while (!stop.signal.aborted) await api.listComputes(project, { signal: stop.signal, deadlineMs: 60_000 });
}
await Promise.all(Array.from({ length: CONCURRENT }, work));
await api.close();
await opened.engine.close();
