import { Writable } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import type { AccountFacts } from '../../src/domain/compute/account-facts.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const HOUR_MS = 3_600_000;
const MIDNIGHT = Date.parse('2026-03-02T00:00:00Z');
const POLICIES = `version: 1
policies:
  - name: jobs
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: Mon-Fri 09:00-17:00 UTC, suspend_after: never }]
    otherwise: { suspend_after: 10m }
`;

/** The accounts of which a day was warned. */
async function warnedOf(timeoutChange: 'stays' | 'restarts', verified: AccountFacts): Promise<unknown[]> {
  const lines: string[] = [];
  const log = new Writable({
    write(chunk, _encoding, done) {
      lines.push(...String(chunk).trim().split('\n'));
      done();
    },
  });
  const awake = { state: 'active' as const, connections: 2, suspendTimeoutSeconds: 600 };
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: MIDNIGHT, policies: POLICIES, verified, log, platform: { behaviours: { timeoutChange } } },
    computes: { one: awake, two: awake, asleep: { suspendTimeoutSeconds: 600 } },
  });
  onTestFinished(() => daemon.close());
  await daemon.clock.runTo(MIDNIGHT + 24 * HOUR_MS);
  expect(await daemon.platform.writes()).toHaveLength(6);
  const warned = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'ebb.timeout_restarts');
  return warned.map(({ account, level }) => [account, level]);
}

it('warns once where a new timeout alone restarts an awake compute, unless that is known', async () => {
  expect(await warnedOf('restarts', {})).toEqual([['default', 'warn']]);
  expect(await warnedOf('restarts', { timeout_change: 'stays' })).toEqual([['default', 'warn']]);
  expect(await warnedOf('restarts', { timeout_change: 'restarts' })).toEqual([]);
  expect(await warnedOf('stays', {})).toEqual([]);
});
