import type { Opinion } from '../opinion.ts';
import type { SchedulePolicy, ScheduleValues, ScheduleWindow } from '../policy.ts';
import { isOpenAt, nextChangeOfAny, openSince } from '../windows.ts';
import type { Rule } from './rule.ts';

/** `kind: schedule`: sizes and timeouts by windows of time, and `otherwise` outside of them. */
export const scheduleRule: Rule<SchedulePolicy> = {
  opinionsAt(policy, policyIndex, instantMs) {
    const opinions: Opinion[] = [];
    for (const [windowIndex, window] of policy.windows.entries()) {
      const openSinceMs = openSince(window.at, instantMs);
      if (openSinceMs === undefined) continue;
      opinions.push({
        policy,
        policyIndex,
        windowIndex,
        openSinceMs,
        source: sourceOf(window, instantMs),
        ...valuesOf(window),
      });
    }
    const otherwise = otherwiseOf(policy);
    if (otherwise) opinions.push({ policy, policyIndex, windowIndex: -1, source: 'otherwise', ...otherwise });
    return opinions;
  },

  nextChangeAfter(policy, instantMs) {
    const changes = policy.windows
      .map((window) => nextChangeOfAny(window.at, instantMs))
      .filter((ms) => ms !== undefined);
    return changes.length === 0 ? undefined : Math.min(...changes);
  },
};

function sourceOf(window: ScheduleWindow, instantMs: number): 'absolute' | 'recurring' {
  const absolute = window.at.some((spec) => spec.kind === 'interval' && isOpenAt(spec, instantMs));
  return absolute ? 'absolute' : 'recurring';
}

function otherwiseOf(policy: SchedulePolicy): Pick<Opinion, 'size' | 'suspendTimeoutSeconds'> | undefined {
  if (policy.otherwise === 'leave') return undefined;
  if (policy.otherwise === 'baseline') return { size: 'baseline', suspendTimeoutSeconds: 'baseline' };
  return valuesOf(policy.otherwise);
}

function valuesOf(values: ScheduleValues): ScheduleValues {
  return {
    ...(values.size && { size: values.size }),
    ...(values.suspendTimeoutSeconds !== undefined && { suspendTimeoutSeconds: values.suspendTimeoutSeconds }),
  };
}
