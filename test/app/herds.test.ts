import { expect, it } from 'vitest';
import { type HerdDeps, herdsBetween } from '../../src/app/fleet/at-boundary.ts';
import type { ReadyWaves } from '../../src/domain/policy/waves.ts';
import { aCompute } from '../support/builders.ts';

const OPENS = 1_790_000_000_000;

/** Computes of accounts, with their next boundaries. */
function herdsOf(
  computes: readonly [account: string, boundaryMs: number | undefined, count: number][],
  waves: ReadyWaves[] = [],
) {
  const evaluated = computes.flatMap(([account, nextBoundaryMs, count]) =>
    Array.from({ length: count }, () => ({ compute: aCompute({ account }), nextBoundaryMs })),
  );
  const deps = {
    fleet: { evaluatedComputes: () => evaluated },
    rules: { current: { policies: { readyWaves: waves } } },
  } as unknown as HerdDeps;
  return herdsBetween(deps, OPENS - 600_000, OPENS + 600_000);
}

it('more than 100 computes of an account at one instant are a herd', () => {
  expect(
    herdsOf([
      ['a', OPENS, 101],
      ['b', OPENS, 100],
      ['a', undefined, 500],
      ['a', OPENS + 600_001, 500],
    ]),
  ).toEqual([{ account: 'a', firstMs: OPENS, lastMs: OPENS, computes: 101 }]);
});

it('the waves of a herd count together', () => {
  const wave = (leadMs: number) => ({ leadMs, computes: 60, last: { priority: 0, part: 0 } });
  const waves = [{ account: 'a', opensAtMs: OPENS, setHash: '', waves: [wave(30_000), wave(15_000)] }];
  const computes: [string, number, number][] = [
    ['a', OPENS - 30_000, 60],
    ['a', OPENS - 15_000, 60],
    ['b', OPENS, 60],
  ];
  expect(herdsOf(computes, waves)).toEqual([
    { account: 'a', firstMs: OPENS - 30_000, lastMs: OPENS - 15_000, computes: 120 },
  ]);
  expect(herdsOf(computes)).toEqual([]);
});
