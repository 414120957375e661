import { describe, expect, it } from 'vitest';
import { countRestarts } from '../../src/domain/evaluate/plan-fleet.ts';
import { aCompute, aRecord, aSchedule, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const NOW_MS = 1_000_000;
const policies = compiled(
  aSchedule({ name: 'few', select: aSelector({ computes: ['ep-1?'] }) }),
  aSchedule({ name: 'all' }),
  aSchedule({ name: 'none', select: aSelector({ computes: ['x'] }) }),
);
/** A hundred computes, of which `few` selects ten; `restarting` of them have an operation of each of the policies. */
const known = (restarting: number, ...of: (string | undefined)[]) =>
  Array.from({ length: 100 }, (_, index) => ({
    compute: aCompute({ computeId: `ep-${index}`, createdAtMs: 0 }),
    record: aRecord({
      openOperations: (index < restarting ? of : []).map((policy) => ({
        ...{ operationId: `op-${index}`, action: 'apply_config', startedAtMs: 0 },
        ...(policy !== undefined && { policy }),
      })),
    }),
  }));
const action = (policy: string, disconnects = true) =>
  ({ kind: 'update', fields: {}, raises: false, priority: 0, policy, disconnects }) as const;

describe('restarts at once', () => {
  it('are a share of the computes that the policy selects, five at least', () => {
    const isFull = (restarting: number, policy: string, share: number) =>
      countRestarts(policies, NOW_MS, known(restarting, policy)).isAtOnceReached('ep-next', policy, share);
    expect([9, 10].map((restarting) => isFull(restarting, 'all', 0.1))).toEqual([false, true]);
    expect([5, 6].map((restarting) => isFull(restarting, 'few', 0.6))).toEqual([false, true]);
    expect([4, 5].map((restarting) => isFull(restarting, 'none', 1))).toEqual([false, true]);
  });

  it('are counted for each policy apart; a hold is none', () => {
    const count = countRestarts(policies, NOW_MS, known(20, 'few', 'hold h1', undefined));
    expect(
      ['few', 'all', 'hold h1', 'undefined'].map((policy) => count.isAtOnceReached('ep-next', policy, 0.1)),
    ).toEqual([...[true, false, false, false]]);
  });

  it('take a place only where they disconnect, and one for each compute', () => {
    const count = countRestarts(policies, NOW_MS, known(9, 'all'));
    count.add('ep-50', action('all', false));
    count.add('ep-1', action('all'));
    expect(count.isAtOnceReached('ep-next', 'all', 0.1)).toBe(false);
    count.add('ep-51', action('all'));
    expect(count.isAtOnceReached('ep-next', 'all', 0.1)).toBe(true);
    expect(count.isAtOnceReached('ep-51', 'all', 0.1)).toBe(false);
  });
});
