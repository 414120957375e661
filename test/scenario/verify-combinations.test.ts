/** `ebb verify` finds what is set in the emulator, in each combination. */
import { describe, expect, it } from 'vitest';
import { BOUNDS } from '../../src/app/verify/verify.ts';
import { ACCOUNT_FACTS, FACT_NAMES } from '../../src/domain/compute/account-facts.ts';
import { reportOf, serviceOf, type Truth, valuesOf } from '../verify/service.ts';

/** Every combination of the values of all facts. */
function combinations(): Truth[] {
  let all: Record<string, string>[] = [{}];
  for (const fact of FACT_NAMES)
    all = all.flatMap((one) => ACCOUNT_FACTS[fact].map((value) => ({ ...one, [fact]: value })));
  return all as Truth[];
}

const ALL = combinations();
const PARTS = ACCOUNT_FACTS.list_updated_at.flatMap((list) =>
  ACCOUNT_FACTS.restart_drops.map((drops) => [list, drops] as const),
);

it('is one of 288', () => {
  expect(ALL).toHaveLength(288);
});

describe('each combination is found', () => {
  it.each(PARTS)('list %s, restart drops %s', { timeout: 300_000 }, async (list, drops) => {
    const own = ALL.filter((truth) => truth.list_updated_at === list && truth.restart_drops === drops);
    // Half of them begin with a compute that is awake.
    for (const [at, truth] of own.entries()) {
      const service = serviceOf(truth, { state: ((at ^ (at >> 1) ^ (at >> 3)) & 1) === 0 ? 'idle' : 'active' });
      const before = service.settings();
      const report = reportOf(await service.verify());
      expect(valuesOf(report), JSON.stringify(report.facts.map(({ experiment: _, ...fact }) => fact))).toEqual(truth);
      expect(service.settings()).toEqual(before);
      expect(service.keeper.kept()).toBeUndefined();
      expect(report.requests).toBeLessThanOrEqual(BOUNDS.requests);
      expect(report.tookMs).toBeLessThanOrEqual(BOUNDS.minutes * 60_000);
    }
  });
});
