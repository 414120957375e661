import { maySleep } from '../../domain/compute/compute-units.ts';
import type { DisruptionRule } from '../../domain/policy/disruption.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import { type PlacedValues, valuesOf } from '../kinds/schedule.ts';
import type { LintRule, Remark } from './rule.ts';
import { timeoutWith } from './schedules.ts';

const DIRECTIONS = ['raise', 'lower'] as const;
type Direction = (typeof DIRECTIONS)[number];

/** A rule `when: idle` for a change after which the compute never sleeps. */
export const idleCannotOccur: LintRule = function* ({ schedules }) {
  for (const policy of schedules) {
    for (const direction of DIRECTIONS) {
      const rule = policy.disruption?.[direction];
      const awake =
        rule?.when === 'idle'
          ? valuesOf(policy).find((wanted) => isReachedAwake(policy, wanted, direction))
          : undefined;
      if (!rule || !awake) continue;
      const message = [
        `${direction} waits until the compute is idle, but by ${placeOf(awake)} it never sleeps`,
        `, so ${consequence(rule)}; write when: quiet, or give it a timeout`,
      ].join('');
      yield { code: 'idle-cannot-occur', policy, at: ['disruption', direction, 'when'], message } satisfies Remark;
    }
  }
};

/** True if the values keep the compute awake and may be reached by a size change in this direction. */
function isReachedAwake(policy: SchedulePolicy, wanted: PlacedValues, direction: Direction): boolean {
  const { size } = wanted.values;
  if (!size) return false;
  if (maySleep({ maxCu: size.maxCu, suspendTimeoutSeconds: timeoutWith(policy, wanted) })) return false;
  // The size before is unknown.
  if (typeof policy.otherwise === 'string' || !policy.otherwise.size) return true;
  const before = valuesOf(policy).flatMap(({ values }) => values.size ?? []);
  return before.some((other) =>
    direction === 'lower'
      ? other.maxCu > size.maxCu
      : other.maxCu < size.maxCu || (other.maxCu === size.maxCu && other.minCu !== size.minCu),
  );
}

function placeOf({ at }: PlacedValues): string {
  return at[0] === 'windows' ? `window ${Number(at[1]) + 1}` : 'otherwise';
}

function consequence({ deadlineMs, atDeadline }: DisruptionRule): string {
  if (deadlineMs === undefined) return 'the change is never made';
  return atDeadline === 'apply' ? 'the change always waits for the deadline' : 'the change is skipped every time';
}
