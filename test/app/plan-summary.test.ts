import { createColors } from 'picocolors';
import { expect, it } from 'vitest';
import { describePlan } from '../../src/cli/plan/describe-plan.ts';
import { summarySections } from '../../src/cli/plan/summary.ts';
import type { EvaluatedCompute } from '../../src/domain/evaluate/evaluate.ts';
import type { Action, Plan } from '../../src/domain/plan/plan.ts';
import { aCompute } from '../support/builders.ts';

const lowering: Action = {
  ...{ kind: 'update', fields: { minCu: 0.25, maxCu: 1 }, disconnects: true, raises: false },
  ...{ policy: 'nights', priority: 0 },
};
const gated = [
  { why: { code: 'window_open', message: 'a window' }, gate: { code: 'cooldown', message: 'restarted' } },
] as const;
const planned = (plan: Pick<Plan, 'verdict'>) =>
  ({
    compute: aCompute({ minCu: 1, maxCu: 4 }),
    plan: { ...plan, actions: [lowering], why: [], waiting: [...gated] },
  }) as unknown as EvaluatedCompute;

it('the summary of a plan says restarts of what acts now, though another change of the compute waits', () => {
  const options = { colors: createColors(false), ownerOf: () => 'web', savedOf: () => undefined };
  const linesOf = (verdict: Plan['verdict']) =>
    summarySections([planned({ verdict })], options)[1]
      ?.split('\n')
      .slice(1);
  expect(linesOf('act')).toEqual(['  ↓ 1 × size 1-4 → 0.25-1 CU, restarts (web 1) [cooldown]']);
  expect(linesOf('wait')).toEqual(['  … 1 × size 1-4 → 0.25-1 CU, would restart (web 1) [cooldown]']);
});

const timeout: Action = {
  ...{ kind: 'update', fields: { suspendTimeoutSeconds: 300 }, disconnects: false, raises: false },
  ...{ policy: 'nights', priority: 0 },
};
/** Its timeout is changed now; its size waits for the permit of a restart. */
const spread = {
  compute: aCompute({ minCu: 1, maxCu: 4, suspendTimeoutSeconds: 60 }),
  decision: { isMatched: true },
  plan: {
    ...{ verdict: 'act', actions: [timeout], held: [lowering], why: [] },
    waiting: [{ why: gated[0].why, gate: { code: 'at_once', message: 'as many as it may' } }],
  },
} as unknown as EvaluatedCompute;

it('a size that at_once holds back is shown beside the timeout that is changed now, and counts as waiting', () => {
  const options = { colors: createColors(false), ownerOf: () => 'web', savedOf: () => undefined };
  const [table, changes] = summarySections([spread], options);
  expect(changes?.split('\n').slice(1)).toEqual([
    '  ~ 1 × suspend_after 1m → 5m; later size 1-4 → 0.25-1 CU, would restart (web 1) [at_once]',
  ]);
  expect(table).toMatch(/^team +raised +lowered +timeout +restarts +waiting .*\nweb +0 +0 +1 +0 +1 /);
});

it('and in the last line with the restarts that come as soon as the limit allows', () => {
  const plan = { atMs: 0, hash: '', computes: [spread] };
  expect(describePlan(plan, { colors: createColors(false), zone: 'UTC', summary: [] })).toContain(
    '1 to change now (1 disconnects clients as soon as at_once and at_most allow), 0 waiting, 0 as wanted',
  );
});
