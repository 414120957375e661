import { expect, it } from 'vitest';
import { type Action, gatesOf, inOrderOfWriting, type Plan, reasonsOf } from '../../src/domain/plan/plan.ts';

const action = (policy: string, raises: boolean, priority: number): Action => ({
  ...{ kind: 'update', fields: {}, disconnects: true },
  ...{ policy, raises, priority },
});
const plan = (verdict: Plan['verdict'], ...actions: Action[]) => ({
  plan: { verdict, actions, why: [], waiting: [] },
});

it('writes raises first, then by priority, and nothing that waits', () => {
  const all = [
    plan('act', action('low', false, 2)),
    plan('act', action('small raise', true, 1), action('restart', false, 9)),
    plan('wait', action('waiting', true, 9)),
    plan('none'),
    plan('act', action('lowest', false, 1)),
    plan('act', action('raise', true, 3)),
    plan('act', action('first', false, 3)),
  ];
  const order = ['raise', 'small raise', 'first', 'low', 'lowest'];
  for (const given of [all, all.toReversed()]) {
    expect(inOrderOfWriting(given).map((one) => one.plan.actions[0]?.policy)).toEqual(order);
  }
});

it('gives the reasons of what is written now first, then each that waits with its gate', () => {
  const [wanted, why, gate] = (['otherwise', 'window_open', 'at_once'] as const).map((code) => ({
    code,
    message: code,
  }));
  if (!wanted || !why || !gate) throw new Error();
  const waiting: Plan = { verdict: 'act', actions: [], why: [wanted], waiting: [{ why, gate }] };
  expect([reasonsOf(waiting), gatesOf(waiting)]).toEqual([[wanted, why, gate], ['at_once']]);
});
