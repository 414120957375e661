import { expect, it } from 'vitest';
import { planFor } from '../../src/app/situation/plan.ts';
import { sourceFromStore } from '../../src/app/situation/stored-source.ts';
import { limitsOf } from '../../src/domain/rate-budget/limits.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord, aSchedule } from '../support/builders.ts';

const PROJECTS = ['p-1', 'p-2', 'p-3'];

/** The projects whose computes are read to plan for a compute, where the store knows one of them. */
async function readFor(compute: string): Promise<{ read: string[]; project: string | undefined }> {
  const read: string[] = [];
  const api = {
    async *listProjects() {
      const value = PROJECTS.map((projectId) => ({ account: 'default', projectId, name: projectId, updatedAtMs: 0 }));
      yield { ok: true, value };
    },
    async listComputes({ projectId }: { projectId: string }) {
      read.push(projectId);
      const computes = [aCompute({ projectId, computeId: `ep-of-${projectId}` })];
      return { ok: true, value: { computes, unreadable: [] } };
    },
  };
  const fake = {
    ...{ projectIds: async () => ['p-2'], timeMs: async () => 0 },
    records: async () => new Map<string, ComputeRecord>([['ep-of-p-2', aRecord()]]),
    ...{ holds: async () => [], freezes: async () => [], samples: async () => [] },
    ...{
      usage: async () => new Map(),
      usageUnits: async () => [],
      document: async () => undefined,
      documents: async () => new Map(),
    },
  };
  const stored = sourceFromStore(fake as unknown as Parameters<typeof sourceFromStore>[0]);
  const source = { api, isLive: true, facts: new Map(), explain: String };
  const rules = {
    disruption: {},
    manualChanges: undefined,
    accounts: [],
    accountOf: () => undefined,
    limits: limitsOf(700, 0),
  };
  const planned = await planFor(
    {
      project: await stored.projectOf(compute),
      policies: { policies: [aSchedule()], hash: 'h', sources: new Map() },
      mode: 'enforce',
    },
    { source, stored, rules, now: Date.now } as unknown as Parameters<typeof planFor>[1],
  );
  if (!planned.ok) throw new Error(planned.problem);
  return { read: read.toSorted(), project: planned.value.project };
}

it('of a compute that is stored only its project is read', async () => {
  expect(await readFor('ep-of-p-2')).toEqual({ read: ['p-2'], project: 'p-2' });
});

it('of a compute that is not stored the whole fleet is read, to find it', async () => {
  expect(await readFor('ep-of-p-3')).toEqual({ read: PROJECTS, project: undefined });
});
