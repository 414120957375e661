import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { planMonth } from '../../../src/cli/plan/month.ts';
import type { Compute } from '../../../src/domain/compute/compute.ts';
import type { FleetSituation } from '../../../src/domain/evaluate/plan-fleet.ts';
import { type CompiledPolicies, withBudgetSteps } from '../../../src/domain/policy/compiled-policies.ts';
import type { PartialDisruption } from '../../../src/domain/policy/disruption.ts';
import { readSettings } from '../../../src/settings/settings.ts';
import { aBudget, aCompute, aRecord, aSchedule, aStepSpan, at, compiled } from '../../support/builders.ts';

const HOUR_MS = 3_600_000;
const NOW = at('2026-03-02T00:00:00Z');
/** Never asleep, so that a change of a CU is 730 CU-hours a month. */
const awake = (name: string, cu: number): Compute =>
  aCompute({
    computeId: `ep-${name}`,
    projectId: name,
    branchId: name,
    minCu: cu,
    maxCu: cu,
    suspendTimeoutSeconds: -1,
  });

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ebb-plan-month-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** The line of a plan that shows these of all computes, which used their size for a week. */
async function monthOf(
  shown: readonly Compute[],
  policies: CompiledPolicies,
  { disruption, ...known }: Partial<FleetSituation> & { disruption?: PartialDisruption } = {},
): Promise<string> {
  const { computes = shown } = known;
  const rows = computes.flatMap(({ projectId, minCu }) =>
    Array.from({ length: 168 }, (_, hour) => {
      const start = new Date(NOW - (168 - hour) * HOUR_MS).toISOString().replace('.000Z', 'Z');
      return `${projectId}/${projectId},${projectId},${projectId},${start},3600,${minCu * 3600}`;
    }),
  );
  const usageFile = join(folder, 'usage.csv');
  await writeFile(usageFile, `${['unit,project_id,branch_id,start,seconds,cu_seconds', ...rows].join('\n')}\n`);
  const read = readSettings({ env: {}, cwd: folder });
  if (!read.ok) throw new Error(read.problems.join('\n'));
  const situation: FleetSituation = {
    ...{ policies, computes, records: new Map(), holds: [], freezes: [], mode: 'enforce', nowMs: NOW },
    ...{ profiles: new Map(), ...known },
  };
  const plan = { atMs: NOW, hash: '', computes: shown.map((compute) => ({ compute })) } as never;
  // Without what only a leader knows, as policies are written.
  const planning = { plan, policies: compiled(...policies.set.policies), situation, projects: [], isStored: false };
  const settings = { ...read.settings, ...(disruption && { disruption }) };
  const month = await planMonth(planning, { settings, usageFile, fleetFile: 'fleet.yaml' });
  // What is saved for all is the sum that a table by team has for each.
  const [all, none] = [month.savedOf(() => true), month.savedOf(() => false)];
  expect([all?.computes, none]).toEqual([shown.length, undefined]);
  return month.text;
}

describe('the line of a plan about a month', () => {
  it('is by the policies alone: a step of a budget that limits now ends with the month', async () => {
    const limited = withBudgetSteps(compiled(aBudget()), [aStepSpan({ fromMs: NOW - HOUR_MS })]);
    expect(await monthOf([awake('one', 4)], limited)).toContain('changes nothing');
    const small = compiled(aSchedule({ windows: [], otherwise: { size: { minCu: 1, maxCu: 1 } } }));
    expect(await monthOf([awake('one', 4)], small)).toContain('saves 2,190 CU-hours a month');
  });

  it('counts a change as made, also where at_most of the settings delays it', async () => {
    const raised = { minCu: 2, maxCu: 2 };
    const policies = compiled(aSchedule({ windows: [], otherwise: { size: raised } }));
    const [first, second] = [awake('a', 2), awake('b', 1)];
    const lastDisruption = { atMs: NOW - 12 * HOUR_MS, lowered: false, policy: 'office-hours' };
    const fleet = { computes: [first, second], records: new Map([['ep-a', aRecord({ lastDisruption })]]) };
    const disruption = { atMost: { share: 0.5, windowMs: 24 * HOUR_MS } };
    expect(await monthOf([second], policies, { ...fleet, disruption })).toContain('costs 730 CU-hours');
  });
});
