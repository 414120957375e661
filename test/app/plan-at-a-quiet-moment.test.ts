import { expect, it } from 'vitest';
import { planFor } from '../../src/app/situation/plan.ts';
import { sourceFromStore } from '../../src/app/situation/stored-source.ts';
import { asksForConnections } from '../../src/domain/connections/connection-samples.ts';
import type { PartialDisruption } from '../../src/domain/policy/disruption.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { limitsOf } from '../../src/domain/rate-budget/limits.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord, aRestart, aSchedule, at } from '../support/builders.ts';

const NOW = at('2026-03-02T12:00:00Z');

/** The plan of a compute with one stored count of one connection, under this policy alone. */
async function planned(policy: Policy, disruption: PartialDisruption = {}) {
  const compute = aCompute({ startedAtMs: NOW - 48 * 3_600_000 });
  const { projectId, computeId } = compute;
  const api = {
    async *listProjects() {
      yield { ok: true, value: [{ account: 'default', projectId, name: 'web-shop', updatedAtMs: 0 }] };
    },
    listComputes: async () => ({ ok: true, value: { computes: [compute], unreadable: [] } }),
  };
  const store = {
    ...{ projectIds: async () => [projectId], timeMs: async () => NOW },
    records: async () => new Map<string, ComputeRecord>([[computeId, aRecord()]]),
    ...{ holds: async () => [], freezes: async () => [], samples: async () => [{ atMs: NOW, connections: 1 }] },
    ...{ usage: async () => new Map(), usageUnits: async () => [] },
    ...{ document: async () => undefined, documents: async () => new Map() },
  };
  const stored = sourceFromStore(store as unknown as Parameters<typeof sourceFromStore>[0]);
  const source = { api, isLive: true, facts: new Map(), explain: String };
  const rules = { disruption, manualChanges: undefined, accounts: [], accountOf: () => undefined };
  const read = { source, stored, rules: { ...rules, limits: limitsOf(700, 0) }, now: () => NOW };
  const policies = { policies: [policy], hash: 'h', sources: new Map() };
  const result = await planFor(
    { policies, mode: 'enforce', project: undefined },
    read as unknown as Parameters<typeof planFor>[1],
  );
  if (!result.ok) throw new Error(result.problem);
  return result.value.plan.computes[0]?.plan;
}

it('a plan knows the stored counts, also where policies only wait for a quiet moment', async () => {
  const restart = aRestart({ at: [{ kind: 'always' }], everyMs: 24 * 3_600_000, connectionsBelow: 5 });
  expect(await planned(restart)).toMatchObject({ verdict: 'act', actions: [{ kind: 'restart' }] });
  const waiting = await planned({ ...restart, connectionsBelow: 1 });
  expect(waiting?.waiting[0]?.gate.message).toBe('1 connections: waiting for fewer than 1');
});

it('or where they leave out when to lower, and the settings wait for a quiet moment', async () => {
  const lower = { when: 'quiet', atDeadline: 'apply' } as const;
  const schedule = aSchedule({ windows: [], otherwise: { size: { minCu: 0.25, maxCu: 0.25 } } });
  expect(await planned(schedule, { lower })).toMatchObject({ verdict: 'act', actions: [{ kind: 'update' }] });
  expect(await planned(schedule, { lower, quietBelow: 1 })).toMatchObject({
    waiting: [{ gate: { message: '1 connections: waiting for fewer than 1' } }],
  });
});

it.each([
  ['quiet', true],
  ['idle', false],
] as const)('a step of a budget that lowers %s computes asks for counts: %s', (when, asks) => {
  const step = { at: { share: 1, of: 'spent' }, disruption: { lower: { when, atDeadline: 'apply' } } };
  const budget = { ...aSchedule(), kind: 'budget', steps: [step] } as unknown as Policy;
  expect(asksForConnections({ policies: [budget] } as never, {})).toBe(asks);
});
