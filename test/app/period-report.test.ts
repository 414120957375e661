import { expect, it } from 'vitest';
import { periodReport } from '../../src/app/recommend/period-report.ts';
import type { Finding } from '../../src/domain/recommend/finding.ts';
import { aCompute } from '../support/builders.ts';

/** What a report says of a compute with these findings. */
function saidOf(...found: { kind: string; policy: boolean; high: number }[]) {
  const compute = aCompute();
  const findings = found.map(
    ({ kind, policy, high }) =>
      ({
        ...{ compute, kind, ...(policy && { policy: {} }) },
        ...{ now: { suspend_timeout_seconds: 3600 }, proposed: { suspend_timeout_seconds: 300 } },
        savesCuHours: { low: 0, mid: high, high },
      }) as unknown as Finding,
  );
  const past = [{ compute, readHistory: () => ({ fromMs: 0, toMs: 1, intervals: [], unknown: [] }) }];
  const { computes } = periodReport({
    ...{ atMs: 0, projects: [], periods: new Map(), past, findings, prices: {}, planOf: () => undefined, missing: [] },
  } as never);
  const kindOf = (finding: unknown) => (finding as { kind: string } | undefined)?.kind;
  return { setting: kindOf(computes[0]?.setting), cause: kindOf(computes[0]?.cause) };
}

it('a change that saves nothing is no reason why no setting helps', () => {
  const asleepAnyway = { kind: 'long_timeout', policy: true, high: 0 };
  const awake = { kind: 'awake', policy: false, high: 10 };
  expect(saidOf(asleepAnyway)).toEqual({ setting: undefined, cause: undefined });
  expect(saidOf(asleepAnyway, awake)).toEqual({ setting: undefined, cause: 'awake' });
  expect(saidOf(awake, { ...asleepAnyway, high: 1 })).toEqual({ setting: 'long_timeout', cause: undefined });
});
