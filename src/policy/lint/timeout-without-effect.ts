import { NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { formatSuspendTimeout, MAX_AUTOSCALING_CU } from '../../domain/compute/compute-units.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { LimitsPolicy } from '../../domain/policy/kinds/limits.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import { valuesOf } from '../kinds/schedule.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { timeoutWith } from './schedules.ts';

/** A timeout beside a fixed size above 16 CU, at which a compute never sleeps. */
export const timeoutWithoutEffect: LintRule = function* (context) {
  for (const policy of context.schedules) yield* ofSchedule(policy);
  for (const policy of policiesOfKind(context.policies, 'limits')) {
    if ((policy.size?.minCu ?? 0) > MAX_AUTOSCALING_CU) yield* ofLimits(policy, context);
  }
};

function* ofSchedule(policy: SchedulePolicy): Iterable<Remark> {
  for (const wanted of valuesOf(policy)) {
    const { size, suspendTimeoutSeconds: written } = wanted.values;
    const seconds = timeoutWith(policy, wanted);
    if (!size || size.maxCu <= MAX_AUTOSCALING_CU || !sleeps(seconds)) continue;
    const timeout = `suspend_after ${formatSuspendTimeout(seconds)}${written === undefined ? ' of otherwise' : ''}`;
    const message = [
      `${timeout} has no effect with ${size.maxCu} CU: above ${MAX_AUTOSCALING_CU} CU a compute never sleeps`,
      `; write suspend_after: never, or a size of ${MAX_AUTOSCALING_CU} CU at most`,
    ].join('');
    const at = [...wanted.at, written === undefined ? 'size' : 'suspend_after'];
    yield { code: 'timeout-without-effect', policy, at, message };
  }
}

/** Limits that keep a compute above 16 CU make every timeout ineffective, including their own bound. */
function* ofLimits(policy: LimitsPolicy, context: LintContext): Iterable<Remark> {
  const seconds = policy.suspendTimeout?.maxSeconds;
  const timeout = sleeps(seconds)
    ? `suspend_after up to ${formatSuspendTimeout(seconds)}`
    : timeoutOfSchedule(policy, context);
  if (timeout === undefined) return;
  const message = [
    `${timeout} has no effect with at least ${policy.size?.minCu} CU: above ${MAX_AUTOSCALING_CU} CU a compute never sleeps`,
    `; write a minimum of ${MAX_AUTOSCALING_CU} CU at most`,
  ].join('');
  yield { code: 'timeout-without-effect', policy, at: ['size'], message };
}

function timeoutOfSchedule(policy: LimitsPolicy, context: LintContext): string | undefined {
  for (const schedule of context.schedules) {
    const seconds = valuesOf(schedule)
      .map(({ values }) => values.suspendTimeoutSeconds)
      .find(sleeps);
    if (seconds === undefined || !context.overlap.mayMeet(policy, schedule)) continue;
    return `suspend_after ${formatSuspendTimeout(seconds)} of ${nameOf(context, schedule)}`;
  }
  return undefined;
}

function sleeps(seconds: number | undefined): seconds is number {
  return seconds !== undefined && seconds !== NEVER_SUSPENDS;
}
