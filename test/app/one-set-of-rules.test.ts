import { expect, it, onTestFinished } from 'vitest';
import type { CompiledRules } from '../../src/app/rules.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const HOUR_MS = 3_600_000;
const MONDAY = Date.parse('2026-03-02T00:00:00Z');
const POLICIES = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 1-2 }]
    otherwise: { size: 0.25 }
`;

it('a reconcile keeps the rules it began with to its end, and the next one uses those that replaced them', async () => {
  const replaced: { now?: () => void } = {};
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: MONDAY, policies: POLICIES, computes: { shop: {} } },
    onEvent: ({ kind }) => kind === 'write_started' && replaced.now?.(),
  });
  onTestFinished(() => daemon.close());
  const before = daemon.rules.current;
  const { set } = before.policies;
  const after: CompiledRules = { ...before, policies: compilePolicies({ ...set, hash: 'replaced' }) };
  replaced.now = () => {
    daemon.rules.current = after;
  };
  await daemon.clock.runTo(MONDAY + 24 * HOUR_MS);
  const origins = daemon.events.flatMap(({ event }) => (event.kind === 'write_ended' ? [event.origin?.set] : []));
  expect(origins).toEqual([set.hash, 'replaced']);
});
