import { nextBoundary } from '../src/domain/decide/boundaries.ts';
import { decide } from '../src/domain/decide/decide.ts';
import { compilePolicies } from '../src/domain/policy/compiled-policies.ts';
import type { SchedulePolicy } from '../src/domain/policy/kinds/schedule.ts';
import { aCompute, aSchedule, aWindow } from '../test/support/builders.ts';
import { aSelector } from '../test/support/selectors.ts';
import { medianMs, printTable } from './figures.ts';

const FLEETS = [1_000, 10_000, 100_000] as const;
const POLICIES = 20;
const NOON = Date.parse('2026-03-02T12:00:00Z');

/** How long it takes to decide for a whole fleet under 20 schedules, and how that grows with the fleet. */
export async function run(): Promise<void> {
  const policies = compilePolicies({
    policies: Array.from({ length: POLICIES }, (_, index) => schedule(index)),
    sources: new Map(),
    hash: '',
  });
  const rows: { computes: number; decideMs: number; boundariesMs: number }[] = [];
  for (const size of FLEETS) {
    const fleet = Array.from({ length: size }, (_, index) =>
      aCompute({ computeId: `ep-${index}`, projectName: `team-${index % 40}-${index}` }),
    );
    const decideMs = await medianMs(5, () => {
      for (const compute of fleet) decide({ policies, compute, baseline: undefined, instantMs: NOON });
    });
    const boundariesMs = await medianMs(3, () => {
      for (const compute of fleet) nextBoundary({ policies, compute, baseline: undefined }, NOON);
    });
    rows.push({ computes: size, decideMs, boundariesMs });
  }
  const first = rows[0];
  printTable(
    [
      'computes',
      `decide, ${POLICIES} policies`,
      'per 1,000, against the first row',
      'next boundary',
      'per 1,000, against the first row',
    ],
    rows.map(({ computes, decideMs, boundariesMs }) => {
      const growth = (ms: number, firstMs: number) => `× ${((ms / firstMs) * (1_000 / computes)).toFixed(2)}`;
      return [
        computes.toLocaleString('en'),
        `${decideMs.toFixed(0)} ms`,
        growth(decideMs, first?.decideMs ?? 1),
        `${boundariesMs.toFixed(0)} ms`,
        growth(boundariesMs, first?.boundariesMs ?? 1),
      ];
    }),
  );
}

function schedule(index: number): SchedulePolicy {
  return aSchedule({
    name: `policy-${index}`,
    priority: index % 5,
    select: aSelector({ projects: [`team-${index}-*`, `team-${index + 20}-*`, '!*-legacy'] }),
    windows: [
      { at: [aWindow({ startMinute: 420 + index })], size: { minCu: 1, maxCu: 4 } },
      { at: [aWindow({ days: [6, 7] })], suspendTimeoutSeconds: 60 },
    ],
  });
}
