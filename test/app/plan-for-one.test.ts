import { expect, it } from 'vitest';
import { planReading, projectOf } from '../../src/compose/planning.ts';
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
    projectIds: async () => ['p-2'],
    records: async () => new Map<string, ComputeRecord>([['ep-of-p-2', aRecord()]]),
    ...{ holds: async () => [], freezes: async () => [], samples: async () => [] },
    ...{
      usage: async () => new Map(),
      usageUnits: async () => [],
      document: async () => undefined,
      documents: async () => new Map(),
    },
  };
  const store = fake as unknown as NonNullable<Parameters<typeof projectOf>[1]>;
  const planned = await planReading({
    ...{ compute, project: await projectOf({ compute }, store) },
    ...{ settings: { accounts: [], disruption: {} }, mode: 'enforce', notes: [], store },
    policies: { policies: [aSchedule()], hash: 'h', sources: new Map() },
    reading: { api, facts: new Map(), takenAtMs: undefined, explain: String },
  } as unknown as Parameters<typeof planReading>[0]);
  if (!planned.ok) throw new Error(planned.problem);
  return { read: read.toSorted(), project: planned.value.project };
}

it('of a compute that is stored only its project is read', async () => {
  expect(await readFor('ep-of-p-2')).toEqual({ read: ['p-2'], project: 'p-2' });
});

it('of a compute that is not stored the whole fleet is read, to find it', async () => {
  expect(await readFor('ep-of-p-3')).toEqual({ read: PROJECTS, project: undefined });
});
