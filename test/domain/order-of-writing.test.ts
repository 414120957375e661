import { expect, it } from 'vitest';
import { type Action, gatesOf, inWriteOrder, type Plan, reasonsOf } from '../../src/domain/plan/plan.ts';
import { aCompute } from '../support/builders.ts';

const action = (policy: string, raises: boolean, priority: number): Action => ({
  ...{ kind: 'update', fields: {}, disconnects: true },
  ...{ policy, raises, priority },
});
const plan = (verdict: Plan['verdict'], ...actions: Action[]) => ({
  plan: { verdict, actions, why: [], waiting: [] },
  compute: aCompute(),
});

it('writes by priority, then raises first, and nothing that waits', () => {
  const all = [
    plan('act', action('low', false, 2)),
    plan('act', action('small raise', true, 1), action('restart', false, 9)),
    plan('wait', action('waiting', true, 9)),
    plan('none'),
    plan('act', action('lowest', false, 1)),
    plan('act', action('raise', true, 3)),
    plan('act', action('first', false, 3)),
  ];
  const order = ['raise', 'first', 'low', 'small raise', 'lowest'];
  for (const given of [all, all.toReversed()]) {
    expect(inWriteOrder(given).map((one) => one.plan.actions[0]?.policy)).toEqual(order);
  }
});

it('writes to computes of the same urgency that are awake first, and lowerings by what they take off', () => {
  const lowering = (policy: string, state: 'active' | 'idle', [from, to]: [number, number]) => ({
    ...plan('act', { ...action(policy, false, 1), fields: { minCu: 0.25, maxCu: to } }),
    compute: aCompute({ state, maxCu: from }),
  });
  const all = [
    lowering('asleep, much', 'idle', [8, 1]),
    lowering('awake, little', 'active', [2, 1]),
    lowering('asleep, little', 'idle', [2, 1]),
    lowering('awake, much', 'active', [8, 1]),
    { ...plan('act', action('asleep, raise', true, 1)), compute: aCompute({ state: 'idle' }) },
  ];
  const order = ['asleep, raise', 'awake, much', 'awake, little', 'asleep, much', 'asleep, little'];
  for (const given of [all, all.toReversed()]) {
    expect(inWriteOrder(given).map((one) => one.plan.actions[0]?.policy)).toEqual(order);
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
