import { expect, it } from 'vitest';
import { computeView } from '../../src/adapters/http/page/compute-view.tsx';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { computePage } from '../../src/app/operator/fleet-page.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import { aCompute, aFreeze, aRecord, aSchedule, at, compiled } from '../support/builders.ts';
import { bounded } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
const compute = aCompute({ projectName: 'shop' });

function freezeBy(owner: string, select: Freeze['select'], expiresAtMs = NOON + 3_600_000): Freeze {
  return {
    ...{ id: `f-${owner}`, owner, reason: `of ${owner}` },
    select,
    createdAtMs: 0,
    expiresAtMs,
    allowRaise: false,
  };
}

/** The page of a compute that policies and people freeze. */
async function shown(freezes: readonly Freeze[], policies = compiled(aSchedule(), aFreeze({ name: 'sale' }))) {
  const fleet = createFleet({ clock: { monotonicMs: () => 0 } as Parameters<typeof createFleet>[0]['clock'] });
  const record = aRecord({ baseline: compute });
  const situation = { policies, nowMs: NOON, mode: 'enforce', projectBusy: false, compute, record } as const;
  fleet.putEvaluated({ ...evaluate(situation), compute, record });
  const found = await computePage(
    {
      store: { holds: async () => [], freezes: async () => freezes, history: async () => [] },
      now: async () => NOON,
      daemon: {
        refusedProjects: () => [],
        ...{ fleet, mode: 'enforce', policies: () => policies, owners: () => [] },
        week: { of: async (subjects: readonly object[]) => subjects.map(() => ({ state: 'not_yet' })) },
      },
    } as unknown as Parameters<typeof computePage>[0],
    compute.computeId,
  );
  if (!found.ok) throw new Error(found.error.message);
  const page = String(await computeView({ compute: found.value, token: {} }));
  return { ...found.value, text: page.replace(/<[^>]+>/g, '') };
}

it('the page of a compute names who has frozen it, why, until when and how to end it', async () => {
  const freezes = [
    freezeBy('ann', 'all'),
    freezeBy('bob', bounded({ projects: ['web'] })),
    freezeBy('eve', 'all', NOON),
  ];
  const { freezes: documents, text } = await shown(freezes);
  expect(documents).toMatchObject([{ owner: 'ann', reason: 'of ann', expires_at: '2026-03-02T13:00:00Z' }]);
  expect(text).toMatch(/Frozen: all computes by ann: of ann; until 13:00 in 1 h\. To end it: ebb unfreeze f-ann/);
});

it('and policies that freeze it, though not the files of a team that are not loaded', async () => {
  const { freezing_policies: policies, text } = await shown([]);
  expect(policies.map(({ policy }) => policy)).toEqual(['sale']);
  expect(text).toContain('Frozen by the policy sale');
  const unloaded = unloadedPart({ name: 'web', projects: ['shop'] }).policies;
  expect((await shown([], compiled(...unloaded))).freezing_policies).toEqual([]);
});
