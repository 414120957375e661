import fc from 'fast-check';
import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/domain/decide/decide.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import { aCompute, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { schedules, sizes } from './arbitraries.ts';
import { rememberMinutes, slowDecide } from './decide-oracle.ts';
import { minutesOf, slowWindows } from './windows-oracle.ts';

const DAY_MS = 86_400_000;
/** Two days around a change of the clocks, also at midnight, also by half an hour. */
const STRETCHES = [
  ['Europe/Berlin', '2026-03-28'],
  ['Europe/Berlin', '2026-10-24'],
  ['Australia/Lord_Howe', '2026-04-04'],
  ['Africa/Cairo', '2026-04-23'],
  ['America/Santiago', '2026-09-05'],
] as const;
/** Sets of schedules in each stretch; EBB_PROPERTY_RUNS=500 for a long run. */
const RUNS = Number(process.env.EBB_PROPERTY_RUNS ?? 3);
const baseline = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 600 };

describe('schedules against a walk minute by minute', () => {
  it.each(STRETCHES)('decide the same in %s from %s on', (zone, date) => {
    const fromMs = DateTime.fromISO(date, { zone: 'utc' }).toMillis();
    const toMs = fromMs + 2 * DAY_MS;
    const windows = rememberMinutes(slowWindows([zone, 'UTC'], fromMs, toMs), fromMs, toMs + 3_600_000);
    const policies = fc
      .array(schedules({ zone, fromMs, days: 2 }), { minLength: 1, maxLength: 3 })
      .map((list) =>
        list.map((policy): SchedulePolicy => ({ ...policy, mode: 'enforce', select: aSelector({ projects: ['*'] }) })),
      );
    fc.assert(
      fc.property(policies, sizes, (given, actual) => {
        const compute = aCompute(actual);
        const set = compiled(...given);
        const seen = minutesOf(fromMs, toMs).map((instantMs) => {
          const { size, suspendTimeoutSeconds: timeout } = slowDecide(
            given,
            { windows, actual: compute, baseline },
            instantMs,
          );
          const decision = decide({ policies: set, compute, baseline, instantMs });
          // What the platform makes of a timeout is no matter of schedules.
          const isForced = decision.trace.some(({ code }) => code === 'never_suspends');
          const suspendTimeoutSeconds = isForced && timeout !== null ? -1 : timeout;
          return { instantMs, expected: { size, suspendTimeoutSeconds }, found: decision.desired };
        });
        const wrong = seen.find(({ expected, found }) => JSON.stringify(expected) !== JSON.stringify(found));
        expect(wrong?.found).toEqual(wrong?.expected);
      }),
      { numRuns: RUNS },
    );
  });
});
