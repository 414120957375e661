import type { Size } from '../../compute/compute.ts';
import type { TimeSpec } from '../../time/time-spec.ts';
import { isOpenAt, mayChangeAfter, mayHaveChangedUntil, nextChangeOfAny, openSince } from '../../time/windows.ts';
import type { ProposedValues } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import type { Rule } from './kind.ts';

/** What a schedule wants while a window is open, or outside. Absent: no value on that field. */
export interface ScheduleValues {
  size?: Size;
  /** Canonical seconds: −1 never, else 60..604800. */
  suspendTimeoutSeconds?: number;
}

export interface ScheduleWindow extends ScheduleValues {
  /** Open while any of these is open. */
  at: readonly TimeSpec[];
  /** Effective at its start: raises begin this much earlier. */
  readyLeadMs?: number;
}

export interface SchedulePolicy extends PolicyBase {
  kind: 'schedule';
  windows: readonly ScheduleWindow[];
  /** `leave`: no value; `baseline`: what the compute had when ebb first saw it. */
  otherwise: ScheduleValues | 'leave' | 'baseline';
}

/** `kind: schedule`: sizes and timeouts by windows of time, and `otherwise` for what no open window decides. */
export const scheduleRule: Rule<SchedulePolicy> = {
  stopsWrites: false,
  directivesAt(policy, policyIndex, instantMs) {
    const proposals: ProposedValues[] = [];
    for (const [windowIndex, window] of policy.windows.entries()) {
      const spoken = openingOf(window, instantMs);
      if (!spoken) continue;
      const { at } = window;
      proposals.push({ type: 'values', policy, policyIndex, windowIndex, at, ...spoken, ...valuesOf(window) });
    }
    const otherwise = otherwiseOf(policy);
    if (otherwise) {
      proposals.push({ type: 'values', policy, policyIndex, windowIndex: -1, source: 'otherwise', ...otherwise });
    }
    return proposals;
  },

  need: () => undefined,
  guard: () => undefined,
  mayChange(policy) {
    const proposals = [...policy.windows, otherwiseOf(policy) ?? {}];
    return [
      ...(proposals.some(({ size }) => size !== undefined) ? (['size'] as const) : []),
      ...(proposals.some(({ suspendTimeoutSeconds: timeout }) => timeout !== undefined)
        ? (['suspend_timeout'] as const)
        : []),
    ];
  },

  times: ({ windows }) => windows.flatMap(({ at }) => at),

  nextChangeAfter(policy, instantMs) {
    let next = Number.POSITIVE_INFINITY;
    for (const { at, readyLeadMs } of policy.windows) {
      next = Math.min(next, mayChangeAfter(at, instantMs) ?? next);
      if (isMixed(at)) next = Math.min(next, mayChangeAfter(at.filter(isAbsolute), instantMs) ?? next);
      if (readyLeadMs !== undefined) {
        next = Math.min(next, led(mayChangeAfter(at, instantMs + readyLeadMs), readyLeadMs) ?? next);
      }
    }
    return Number.isFinite(next) ? next : undefined;
  },

  lastChangeUntil(policy, instantMs) {
    let last = Number.NEGATIVE_INFINITY;
    for (const { at, readyLeadMs } of policy.windows) {
      last = Math.max(last, mayHaveChangedUntil(at, instantMs));
      if (isMixed(at)) last = Math.max(last, mayHaveChangedUntil(at.filter(isAbsolute), instantMs));
      if (readyLeadMs !== undefined) {
        last = Math.max(last, mayHaveChangedUntil(at, instantMs + readyLeadMs) - readyLeadMs);
      }
    }
    return last;
  },
};

function led(instantMs: number | undefined, leadMs: number): number | undefined {
  return instantMs === undefined ? undefined : instantMs - leadMs;
}

/** Whether a window speaks: it is open, or so soon to open that raises begin. */
function openingOf(
  { at, readyLeadMs }: ScheduleWindow,
  instantMs: number,
): Pick<ProposedValues, 'source' | 'openSinceMs' | 'leads'> | undefined {
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

function otherwiseOf(policy: SchedulePolicy): Pick<ProposedValues, 'size' | 'suspendTimeoutSeconds'> | undefined {
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
