import { describe, expect, it } from 'vitest';
import { differences } from '../../src/cli/apply/plan-file.ts';
import { fleetPlanJson } from '../../src/domain/evaluate/fleet-plan-json.ts';
import { planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import { aCompute, aRecord, aSchedule, at, compiled } from '../support/builders.ts';

/** A plan as its file has it. */
function aPlan() {
  const computes = [aCompute({ state: 'idle' })];
  return fleetPlanJson(
    planFleet({
      ...{ policies: compiled(aSchedule()), computes, records: new Map([['ep-one', aRecord()]]) },
      ...{ mode: 'enforce', nowMs: at('2026-03-02T12:00:00Z'), profiles: new Map() },
      ...{ disruption: undefined, manualChanges: undefined },
    }),
  );
}

/** The plan's file with one value in its only compute set by hand; the hash stays. */
function edited(...[path, value]: [path: string[], value: unknown]) {
  const plan = aPlan();
  const last = path.at(-1) ?? '';
  let inner: object = plan.computes[0] ?? {};
  for (const name of path.slice(0, -1)) inner = Reflect.get(inner, name);
  Reflect.set(inner, last, value);
  return plan;
}

describe('a plan file', () => {
  it('is the same as the plan that it was written from', () => {
    expect(differences(aPlan(), aPlan())).toEqual([]);
  });

  it.each([
    [['actions', '0', 'fields', 'max_cu'], 8, 'min_cu 1, max_cu 8, from'],
    [['actions', '0', 'disconnects'], true, 'max_cu 4 (disconnects), from'],
    [['actions', '0', 'kind'], 'restart', 'a restart, from'],
    [['actions'], [], 'nothing;'],
    [['current', 'max_cu'], 3, 'from 0.25-3 CU'],
    [['desired', 'max_cu'], 8, 'desired min_cu 1, max_cu 8'],
    [['verdict'], 'wait', 'later min_cu 1'],
    [['compute_id'], 'ep-other', 'ep-other: the plan in the file is'],
    [['project_id'], 'p-other', 'project p-other'],
  ])('differs from the plan once %j is edited, though it keeps its hash', (path, value, says) => {
    expect(differences(edited(path, value), aPlan()).join('\n')).toContain(says);
  });

  it('differs from the plan if it has a compute twice, or is of other policies', () => {
    const plan = aPlan();
    const twice = { ...plan, computes: [...plan.computes, ...plan.computes] };
    expect(differences(twice, plan).join()).toContain(', and again min_cu 1');
    expect(differences({ ...plan, hash: 'other' }, plan)).toEqual(['the policies are not those of the plan']);
  });
});
