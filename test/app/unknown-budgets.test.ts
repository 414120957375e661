import { expect, it } from 'vitest';
import { REPORTS } from '../../src/app/rollout/reload.ts';
import { planFor } from '../../src/app/situation/plan.ts';
import { sourceFromStore } from '../../src/app/situation/stored-source.ts';
import { openBudgets } from '../../src/app/usage/budget-store.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import { limitsOf } from '../../src/domain/rate-budget/limits.ts';
import { isoInstant } from '../../src/domain/time/units.ts';
import type { DaemonDocument } from '../../src/ports/documents.ts';
import { aBudget, aCompute, aSchedule, at } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW_MS = at('2026-03-04T12:00:00Z');
const NOT_KNOWN = ['steps of budget: daemons have not stored yet which of them limit'];
const ONLY_NOTIFIES = aBudget({ steps: [{ at: 1, of: 'spent', notify: ['team'] }] });

/** The missing facts in a command's plan. With `staged`, a daemon has reported; with `areStored`, it has stored the steps. */
async function missingIn(policies: Policy[], { staged, areStored }: { staged?: string[]; areStored?: true } = {}) {
  const store = createMemoryStore(createSteppedClock(NOW_MS, () => false));
  const report = { mode: 'enforce', set_hash: 'h', last_seen: isoInstant(NOW_MS), staged };
  if (staged) await REPORTS.put(store, 'one', report as unknown as DaemonDocument);
  if (areStored) await (await openBudgets(store)).replace([]);
  const api = {
    async *listProjects() {
      yield { ok: true, value: [{ account: 'default', projectId: 'p', name: 'p', updatedAtMs: 0 }] };
    },
    listComputes: async () => ({ ok: true, value: { computes: [aCompute({ projectId: 'p' })], unreadable: [] } }),
  };
  const planned = await planFor({ policies: policySet(policies, new Map()), mode: 'enforce' }, {
    source: { api, isLive: true, facts: new Map(), explain: String },
    stored: sourceFromStore(store),
    rules: { disruption: {}, accounts: [], accountOf: () => undefined, limits: limitsOf(700, 0) },
    now: () => NOW_MS,
  } as unknown as Parameters<typeof planFor>[1]);
  if (!planned.ok) throw new Error(planned.problem);
  return planned.value.missing;
}

it('a plan says that it does not know which steps of budgets limit, while daemons run that have not stored it', async () => {
  expect(await missingIn([aSchedule(), aBudget()], { staged: [] })).toEqual(NOT_KNOWN);
  expect(await missingIn([aSchedule(), aBudget()], { staged: [], areStored: true })).toEqual([]);
});

it.each<[string, Policy[], string[] | undefined]>([
  ['no step limits', [aSchedule(), ONLY_NOTIFIES, aBudget({ name: 'observed', mode: 'observe' })], []],
  ['no daemon decides, since none runs', [aBudget()], undefined],
  ['no daemon decides, since the set is staged', [aBudget()], ['it waits for approval']],
])('a plan says nothing of it where %s', async (_, policies, staged) => {
  expect(await missingIn(policies, { ...(staged && { staged }) })).toEqual([]);
});
