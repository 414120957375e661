import { sum } from '../sum.ts';
import { overlaps } from '../time/span.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { KnownDays } from '../usage/projection.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { AwakeHistory } from './intervals.ts';
import { usageWhileAwake } from './usage-while-awake.ts';

/**
 * The CU-hours of the computes of one project by day (UTC), estimated from their sleep and the total of a billing period. Has only whole days
 * with known sleep. The size while awake is the measured average; without one, the size between minimum and maximum that explains the total.
 */
export function dailyUse(
  computes: readonly {
    compute: { minCu: number; maxCu: number };
    history: AwakeHistory;
    hours?: readonly UsageBucket[];
  }[],
  period: { fromMs: number; untilMs: number; cuHours: number },
): KnownDays {
  // How the use of a project without computes was spread over the days is unknown.
  if (computes.length === 0) return new Map();
  // Without `period`: the total of the billing period is used below.
  const sizes = computes.map(({ compute, history, hours }) => {
    const { averageCu } = usageWhileAwake({ compute, history, ...(hours && { hours }) });
    return { history, low: averageCu ?? compute.minCu, high: averageCu ?? compute.maxCu };
  });
  const totalAt = (end: 'low' | 'high') =>
    sum(sizes.map((size) => size[end] * awakeHours(size.history, period.fromMs, period.untilMs)));
  const [low, high] = [totalAt('low'), totalAt('high')];
  // The total does not tell computes apart, so all are assumed at the same place in their ranges.
  const place = high > low ? Math.min(1, Math.max(0, (period.cuHours - low) / (high - low))) : 0;
  const days = new Map<number, number>();
  const fromMs = Math.max(...sizes.map(({ history }) => history.fromMs));
  const toMs = Math.min(...sizes.map(({ history }) => history.toMs));
  for (let dayMs = Math.ceil(fromMs / DAY_MS) * DAY_MS; dayMs + DAY_MS <= toMs; dayMs += DAY_MS) {
    const day = { fromMs: dayMs, toMs: dayMs + DAY_MS };
    if (sizes.some(({ history }) => history.unknown.some((gap) => overlaps(gap, day)))) continue;
    const used = sizes.map(
      (one) => (one.low + place * (one.high - one.low)) * awakeHours(one.history, dayMs, dayMs + DAY_MS),
    );
    days.set(dayMs, sum(used));
  }
  return days;
}

function awakeHours({ intervals }: AwakeHistory, fromMs: number, toMs: number): number {
  const overlapsMs = intervals.map(({ startMs, endMs }) =>
    Math.max(0, Math.min(endMs, toMs) - Math.max(startMs, fromMs)),
  );
  return sum(overlapsMs) / HOUR_MS;
}
