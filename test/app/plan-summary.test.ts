import { createColors } from 'picocolors';
import { expect, it } from 'vitest';
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
