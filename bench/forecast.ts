import { forecastFleet } from '../src/domain/forecast/forecast.ts';
import { compilePolicies } from '../src/domain/policy/compiled-policies.ts';
import type { SchedulePolicy } from '../src/domain/policy/kinds/schedule.ts';
import { aCompute, aSchedule, aWindow } from '../test/support/builders.ts';
import { aSelector } from '../test/support/selectors.ts';
import { medianMs, printTable } from './figures.ts';

const FLEETS = [100, 300, 1_000] as const;
const POLICIES = 20;
const SIZES = [0.25, 0.5, 1, 2, 4];
const FROM = Date.parse('2026-01-01T00:00:00Z');
const TO = Date.parse('2027-01-01T00:00:00Z');

/** How long a forecast of a year takes for a fleet under 20 schedules in two zones, and how that grows with the fleet. */
export async function run(): Promise<void> {
  const set = {
    policies: Array.from({ length: POLICIES }, (_, index) => schedule(index)),
    sources: new Map(),
    hash: '',
  };
  const rows: { computes: number; segments: number; ms: number }[] = [];
  for (const size of FLEETS) {
    const subjects = Array.from({ length: size }, (_, index) => ({ compute: compute(index) }));
    let segments = 0;
    const ms = await medianMs(3, () => {
      const fleet = forecastFleet({ policies: compilePolicies(set), subjects, fromMs: FROM, toMs: TO });
      segments = fleet.reduce((sum, one) => sum + one.segments.length, 0);
    });
    rows.push({ computes: size, segments, ms });
  }
  const first = rows[0];
  printTable(
    ['computes', 'segments', `a year, ${POLICIES} policies`, 'per 100, against the first row'],
    rows.map(({ computes, segments, ms }) => [
      computes.toLocaleString('en'),
      segments.toLocaleString('en'),
      `${ms.toFixed(0)} ms`,
      `× ${((ms / (first?.ms ?? 1)) * (FLEETS[0] / computes)).toFixed(2)}`,
    ]),
  );
}

/** Each is under one policy of its team and two for all. */
function compute(index: number) {
  const minCu = SIZES[index % SIZES.length] ?? 1;
  return aCompute({
    computeId: `ep-${index}`,
    projectName: `team-${index % POLICIES}-${index}`,
    minCu,
    maxCu: minCu * 2,
  });
}

function schedule(index: number): SchedulePolicy {
  const projects = index < 2 ? ['*'] : [`team-${index}-*`, '!*-legacy'];
  const zone = index % 2 === 0 ? 'Europe/Berlin' : 'America/New_York';
  return aSchedule({
    name: `policy-${index}`,
    priority: index % 5,
    select: aSelector({ projects }),
    windows: [
      { at: [aWindow({ startMinute: 420 + index, zone })], size: { minCu: 1, maxCu: 4 } },
      { at: [aWindow({ days: [6, 7], zone })], suspendTimeoutSeconds: 60 },
    ],
  });
}
