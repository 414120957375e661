import { describe, expect, it } from 'vitest';
import {
  type ComputeWithStatus,
  groupsOf,
  inOrder,
  matching,
  upcomingOf,
  withinAnHour,
} from '../../src/app/operator/fleet-page.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { aCompute, aRecord, aSchedule, at, compiled, REAL } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
const SIX = at('2026-03-02T18:00:00Z');
const policies = compiled(
  aSchedule({ name: 'web', owner: 'team-web', select: aSelector({ projects: ['web'] }) }),
  aSchedule({ name: 'dev', owner: 'team-dev', select: aSelector({ projects: ['dev'] }) }),
);

function known(projectId: string, computeId: string, more: Parameters<typeof aCompute>[0] = {}): ComputeWithStatus {
  const compute = aCompute({ projectId, projectName: projectId, computeId, ...more });
  const record = aRecord({ baseline: compute });
  const situation = { policies, nowMs: NOON, mode: 'observe', projectBusy: false } as const;
  return {
    evaluatedCompute: { ...evaluate({ ...situation, compute, record }), compute, record },
    status: 'observed',
    owner: `team-${projectId}`,
  };
}
const fleet = [
  known('web', 'ep-b', { state: 'active', minCu: 1, maxCu: 4 }),
  known('web', 'ep-a', { state: 'idle', minCu: 2, maxCu: 8 }),
  known('dev', 'ep-c', { state: 'active', minCu: 0.25, maxCu: 16 }),
];
const idsOf = (computes: readonly ComputeWithStatus[]) =>
  computes.map(({ evaluatedCompute: { compute } }) => compute.computeId);

describe('a page of the fleet', () => {
  it.each([
    [{ owner: 'team-web' }, ['ep-b', 'ep-a']],
    [{ project: 'dev' }, ['ep-c']],
    [{ policy: 'web' }, ['ep-b', 'ep-a']],
    [{ status: 'held' }, []],
    [{ reason: 'observe' }, ['ep-a', 'ep-c']],
    [{ owner: 'team' }, []],
    [{ q: 'ACTIVE', owner: 'team-web' }, ['ep-b']],
  ])('is narrowed to what %j is true of', async (query, ids) => {
    expect(idsOf(await matching(fleet, { q: '', ...query }, REAL.clock))).toEqual(ids);
  });

  it('is in the order that was asked for', () => {
    expect(idsOf(inOrder(fleet, 'compute'))).toEqual(['ep-a', 'ep-b', 'ep-c']);
    expect(idsOf(inOrder(fleet, 'project'))).toEqual(['ep-c', 'ep-a', 'ep-b']);
    expect(idsOf(inOrder(fleet, 'size'))).toEqual(['ep-c', 'ep-a', 'ep-b']);
  });

  it('sums up by owner or project, what may use most first', () => {
    expect(groupsOf(fleet, 'owner')).toEqual([
      { name: 'team-dev', computes: 1, active: 1, min_cu: 0.25, max_cu: 16 },
      { name: 'team-web', computes: 2, active: 1, min_cu: 1, max_cu: 4 },
    ]);
    expect(groupsOf(fleet, undefined)).toEqual([]);
  });

  it('says what policies change within an hour', () => {
    expect(withinAnHour(fleet, NOON)).toEqual({ computes: 0, first: null });
    expect(withinAnHour(fleet, SIX - 3_600_000)).toEqual({ computes: 3, first: '2026-03-02T18:00:00Z' });
  });

  it('counts the next changes of a day by hour and owner', () => {
    const owners = [
      { owner: 'team-web', computes: 2 },
      { owner: 'team-dev', computes: 1 },
    ];
    const six = '2026-03-02T18:00:00Z';
    expect(upcomingOf(fleet, NOON)).toEqual([{ first: six, last: six, computes: 3, owners }]);
    const later = fleet.map((one, index) => ({
      ...one,
      evaluatedCompute: { ...one.evaluatedCompute, nextChangeMs: SIX + (10 + 15 * index) * 60_000 },
    }));
    const span = { first: '2026-03-02T18:10:00Z', last: '2026-03-02T18:40:00Z' };
    expect(upcomingOf(later, NOON)).toEqual([{ ...span, computes: 3, owners }]);
    expect(upcomingOf(fleet, SIX - 25 * 3_600_000)).toEqual([]);
  });
});
