import { expect, it } from 'vitest';
import { StatusQuery } from '../../src/adapters/http/api/bodies.ts';
import type { OperatorParts } from '../../src/app/operator/parts.ts';
import { status } from '../../src/app/operator/status.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { aCompute, aHold, aRecord, aSchedule, at, compiled } from '../support/builders.ts';

const NOW_MS = at('2026-03-02T09:00:00Z');
const of = (project: string, owner: string) => ({
  ...aSchedule({ name: project, select: { projects: [`${project}-*`], minAgeMs: 0 } }),
  owner,
});
const policies = compiled(of('web', 'team-web'), of('api', 'team-api'));
const evaluated = ['web-eu', 'web-us', 'api-eu'].map((projectName) => {
  const compute = aCompute({ projectName, projectId: `p-${projectName}`, computeId: `ep-${projectName}` });
  const record = aRecord();
  const situation = { policies, compute, record, mode: 'enforce', projectBusy: false, nowMs: NOW_MS } as const;
  return { compute, record, ...evaluate(situation) };
});
const holds = ['web-eu', 'api-eu'].map((name) => aHold({ id: name, projectId: `p-${name}`, computeId: `ep-${name}` }));

const parts = {
  now: async () => NOW_MS,
  store: {
    holds: async () => holds,
    freezes: async () => [],
    usage: async () => new Map(),
    generation: async () => undefined,
    projectIds: async () => [],
  },
  daemon: {
    fleet: { evaluatedComputes: () => evaluated, known: () => undefined, evaluatedCompute: () => undefined },
    ...{ mode: 'enforce', policies: () => policies, owners: () => [['web-us', 'ann']], revision: () => undefined },
    ...{ staged: () => [], policyProblems: () => [], readiness: async () => ({ ready: true, checks: [] }) },
  },
} as unknown as OperatorParts;

async function shown(query: object) {
  const found = await status(parts, query);
  if (!found.ok) throw new Error(found.error.message);
  const { computes, holds: held } = found.value;
  return [Object.values(computes).reduce((sum, count) => sum + count, 0), held.map(({ compute_id }) => compute_id)];
}

it('is of all computes, or of those of an owner, or of those that a selector matches', async () => {
  expect(await shown({})).toEqual([3, ['ep-web-eu', 'ep-api-eu']]);
  expect(await shown({ owner: 'team-web' })).toEqual([1, ['ep-web-eu']]);
  expect(await shown({ owner: 'ann' })).toEqual([1, []]);
  const { select } = StatusQuery.parse({ select: '{"projects":["*-eu"]}' });
  expect(await shown({ select })).toEqual([2, ['ep-web-eu', 'ep-api-eu']]);
  expect(await shown({ select, owner: 'team-api' })).toEqual([1, ['ep-api-eu']]);
});

it('can not be of some where no daemon knows whose they are', async () => {
  const { daemon: _, ...store } = parts;
  expect(await status(store, { owner: 'ann' })).toMatchObject({ ok: false, error: { code: 'unavailable' } });
});

it.each(['{', '{}', '{"project":["x"]}', '7'])('refuses a selector that is none: %s', (select) => {
  expect(StatusQuery.safeParse({ select }).success).toBe(false);
});
