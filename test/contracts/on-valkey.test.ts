import { describe } from 'vitest';
import { openTestEngine, type TestEngine } from '../support/engines.ts';
import { findProgram } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeJobQueue, queuesOn } from './job-queue.contract.ts';
import { describeStore } from './store.contract.ts';

const program = findProgram('valkey-server');

async function valkeyTestEngine(): Promise<TestEngine> {
  const server = await startRedisServer({ ...(program !== undefined && { program }) });
  const opened = await openTestEngine(server.url);
  return { ...opened, close: () => opened.engine.close().then(server.close) };
}

// Skipped also where CI is set: many systems have no package of it yet, and it speaks the protocol of Redis.
describe.skipIf(program === undefined)('Valkey (needs valkey-server: apt-get install valkey-server)', () => {
  describe('store', () => describeStore(valkeyTestEngine));
  describe('job queue', () => describeJobQueue(queuesOn(valkeyTestEngine)));
});
