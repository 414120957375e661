import type { Opinion } from '../opinion.ts';
import type { SchedulePolicy, ScheduleValues, ScheduleWindow } from '../policy.ts';
import type { TimeSpec } from '../time-spec.ts';
import { isOpenAt, lastChangeOfAny, nextChangeOfAny, openSince } from '../windows.ts';
import type { Rule } from './rule.ts';

/** `kind: schedule`: sizes and timeouts by windows of time, and `otherwise` outside of them. */
export const scheduleRule: Rule<SchedulePolicy> = {
  statementsAt(policy, policyIndex, instantMs) {
    const opinions = policy.windows.flatMap((window, windowIndex): Opinion[] => {
      const spoken = openingOf(window, instantMs);
      return spoken ? [{ says: 'values', policy, policyIndex, windowIndex, ...spoken, ...valuesOf(window) }] : [];
    });
    const otherwise = otherwiseOf(policy);
    if (otherwise) {
      opinions.push({ says: 'values', policy, policyIndex, windowIndex: -1, source: 'otherwise', ...otherwise });
    }
    return opinions;
  },

  mayChange(policy) {
    const wishes = [...policy.windows, otherwiseOf(policy) ?? {}];
    return [
      ...(wishes.some(({ size }) => size !== undefined) ? (['size'] as const) : []),
      ...(wishes.some(({ suspendTimeoutSeconds: wish }) => wish !== undefined) ? (['suspend_timeout'] as const) : []),
    ];
  },

  nextChangeAfter(policy, instantMs) {
    const changes = policy.windows.flatMap(({ at, readyLeadMs }) => [
      nextChangeOfAny(at, instantMs),
      isMixed(at) ? nextChangeOfAny(at.filter(isAbsolute), instantMs) : undefined,
      readyLeadMs === undefined ? undefined : led(nextChangeOfAny(at, instantMs + readyLeadMs), readyLeadMs),
    ]);
    const known = changes.filter((ms) => ms !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  },

  lastChangeUntil(policy, instantMs) {
    const changes = policy.windows.flatMap(({ at, readyLeadMs }) => [
      lastChangeOfAny(at, instantMs),
      ...(isMixed(at) ? [lastChangeOfAny(at.filter(isAbsolute), instantMs)] : []),
      ...(readyLeadMs === undefined ? [] : [lastChangeOfAny(at, instantMs + readyLeadMs) - readyLeadMs]),
    ]);
    return Math.max(Number.NEGATIVE_INFINITY, ...changes);
  },
};

function led(instantMs: number | undefined, leadMs: number): number | undefined {
  return instantMs === undefined ? undefined : instantMs - leadMs;
}

/** Whether a window speaks: it is open, or so soon to open that raises begin. */
function openingOf(
  { at, readyLeadMs }: ScheduleWindow,
  instantMs: number,
): Pick<Opinion, 'source' | 'openSinceMs' | 'leads'> | undefined {
  const openSinceMs = openSince(at, instantMs);
  if (openSinceMs !== undefined) return { source: sourceOf(at, instantMs), openSinceMs };
  if (readyLeadMs === undefined) return undefined;
  const opensAtMs = nextChangeOfAny(at, instantMs);
  if (opensAtMs === undefined || opensAtMs > instantMs + readyLeadMs) return undefined;
  return { source: sourceOf(at, opensAtMs), openSinceMs: opensAtMs, leads: true };
}

/** An absolute interval comes before recurring times: where both are open, its ends matter too. */
function isMixed(at: ScheduleWindow['at']): boolean {
  return at.some(isAbsolute) && !at.every(isAbsolute);
}

function isAbsolute({ kind }: TimeSpec): boolean {
  return kind === 'interval';
}

function sourceOf(at: ScheduleWindow['at'], instantMs: number): 'absolute' | 'recurring' {
  const absolute = at.some((spec) => isAbsolute(spec) && isOpenAt(spec, instantMs));
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
