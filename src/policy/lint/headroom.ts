import type { Size } from '../../domain/compute/compute.ts';
import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../domain/compute/compute-units.ts';
import { type ConnectionProfile, usefulMaximum } from '../../domain/connections/connection-profile.ts';
import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import { valuesOf } from '../kinds/schedule.ts';
import { type LintContext, type LintRule, nameOf, type Remark } from './rule.ts';
import { maySelectIn } from './selector-overlap.ts';

/** A headroom whose `max_size` is below the maximum of a schedule. */
export const headroomTooSmall: LintRule = function* (context) {
  for (const { policy, sizes } of headroomsWithSizes(context)) {
    const largest = sizes.reduce((a, b) => (b.size.maxCu > a.size.maxCu ? b : a));
    if (largest.size.maxCu <= policy.maxCu) continue;
    const message = [
      `max_size ${policy.maxCu} CU is below the ${largest.size.maxCu} CU that ${nameOf(context, largest.schedule)} wants`,
      `, where this can add nothing; write max_size: ${largest.size.maxCu} or more`,
    ].join('');
    yield { code: 'headroom-too-small', policy, at: ['max_size'], message } satisfies Remark;
  }
};

/** A headroom that can't reach its `max_size`, as a schedule keeps the minimum and an autoscaling range can't span both. */
export const spanTooWide: LintRule = function* (context) {
  for (const { policy, sizes } of headroomsWithSizes(context)) {
    const raised = sizes.filter(({ size }) => size.maxCu < policy.maxCu);
    const [first] = raised;
    if (policy.mayRaiseMin || !first) continue;
    const lowest = raised.reduce((a, b) => (b.size.minCu < a.size.minCu ? b : a), first);
    const reachCu = largestMaximum(lowest.size.minCu);
    if (policy.maxCu <= reachCu) continue;
    const why =
      policy.maxCu > MAX_AUTOSCALING_CU && reachCu === MAX_AUTOSCALING_CU
        ? `a range ends at ${MAX_AUTOSCALING_CU} CU`
        : `a range spans ${MAX_AUTOSCALING_SPAN_CU} CU at most`;
    const message = [
      `max_size ${policy.maxCu} CU can't be reached: ${nameOf(context, lowest.schedule)} keeps the minimum at ${lowest.size.minCu} CU`,
      ` and ${why}, so it ends at ${reachCu} CU; write may_raise_min: true, or max_size: ${reachCu}`,
    ].join('');
    yield { code: 'span-too-wide', policy, at: ['max_size'], message } satisfies Remark;
  }
};

/** A headroom whose larger sizes give no more connections, as these depend on the minimum, too. */
export const minimumLimitsConnections: LintRule = function* (context) {
  for (const { policy, sizes } of headroomsWithSizes(context)) {
    const lowest = sizes.reduce((a, b) => (b.size.minCu < a.size.minCu ? b : a));
    const { minCu } = lowest.size;
    if (policy.mayRaiseMin || minCu > policy.maxCu) continue;
    const reachCu = Math.min(policy.maxCu, largestMaximum(minCu));
    const profile = profilesFor(policy, context).find(
      (one) => one.maxConnections({ minCu: reachCu, maxCu: reachCu }) > one.maxConnections({ minCu, maxCu: reachCu }),
    );
    if (!profile) continue;
    const allowsCu = usefulMaximum(minCu, reachCu, profile);
    const message = [
      `with the profile ${profile.name} the minimum of ${minCu} CU that ${nameOf(context, lowest.schedule)} wants allows ${allowsCu} CU`,
      `: up to max_size ${policy.maxCu} CU there are no more connections; write may_raise_min: true, or max_size: ${allowsCu}`,
    ].join('');
    yield { code: 'minimum-limits-connections', policy, at: ['max_size'], message } satisfies Remark;
  }
};

/** The profiles of the accounts in which a policy may select something. */
function profilesFor({ select }: HeadroomPolicy, { profiles }: LintContext): ConnectionProfile[] {
  return [...profiles].filter(([account]) => maySelectIn(select, account)).map(([, profile]) => profile);
}

interface HeadroomWithSizes {
  policy: HeadroomPolicy;
  /** At least one. */
  sizes: readonly { schedule: SchedulePolicy; size: Size }[];
}

/** Headroom policies with the sizes that schedules want for the same computes. */
function* headroomsWithSizes({ policies, schedules, overlap }: LintContext): Iterable<HeadroomWithSizes> {
  for (const policy of policiesOfKind(policies, 'headroom')) {
    const sizes = schedules
      .filter((schedule) => overlap.mayMeet(policy, schedule))
      .flatMap((schedule) => valuesOf(schedule).flatMap(({ values: { size } }) => (size ? [{ schedule, size }] : [])));
    if (sizes.length > 0) yield { policy, sizes };
  }
}

/** The largest maximum of a range with this minimum. */
function largestMaximum(minCu: number): number {
  const reachCu = Math.min(MAX_AUTOSCALING_CU, minCu + MAX_AUTOSCALING_SPAN_CU);
  return COMPUTE_SIZES_CU.findLast((size) => size <= reachCu) ?? minCu;
}

/** Finds a `critical` below `target`: every raise then disconnects at once, and `target` has no effect. */
export const criticalBelowTarget: LintRule = function* ({ policies }) {
  for (const policy of policiesOfKind(policies, 'headroom')) {
    const { criticalShare, targetShare } = policy;
    if (criticalShare === undefined || criticalShare >= targetShare) continue;
    const [critical, target] = [criticalShare, targetShare].map((share) => `${Math.round(share * 100)}%`);
    const message = [
      `critical ${critical} is below target ${target}, so no raise ever waits for a good moment`,
      '; write a critical above the target, such as 90%',
    ].join('');
    yield { code: 'critical-below-target', policy, at: ['critical'], message } satisfies Remark;
  }
};
