import { FIELD_GROUPS, valueOfGroup } from '../../compute/compute.ts';
import type { TimeSpec } from '../../time/time-spec.ts';
import { isOpenAt, mayChangeAfter, mayHaveChangedUntil, nextChangeOfAny, openSince } from '../../time/windows.ts';
import type { ProposedValues } from '../directive.ts';
import type { PolicyBase } from '../policy-base.ts';
import { leadsOf, type ScheduleValues, type ScheduleWindow } from '../schedule-window.ts';
import { type Rule, withoutQuestions } from './kind.ts';

export interface SchedulePolicy extends PolicyBase {
  kind: 'schedule';
  windows: readonly ScheduleWindow[];
  /** The values outside of windows. `leave`: none; `baseline`: the compute's baseline. */
  otherwise: ScheduleValues | 'leave' | 'baseline';
}

/** `kind: schedule`: sizes and timeouts in windows of time, and `otherwise` outside of all windows. */
export const scheduleRule: Rule<SchedulePolicy> = {
  stopsWrites: false,
  directivesAt(policy, policyIndex, instantMs) {
    const proposals: ProposedValues[] = [];
    for (const [windowIndex, window] of policy.windows.entries()) {
      const opening = openingOf(window, instantMs);
      if (!opening) continue;
      const { at } = window;
      proposals.push({ type: 'values', policy, policyIndex, windowIndex, at, ...opening, ...valuesOf(window) });
    }
    const otherwise = otherwiseOf(policy);
    if (otherwise) {
      proposals.push({ type: 'values', policy, policyIndex, windowIndex: -1, source: 'otherwise', ...otherwise });
    }
    return proposals;
  },

  ...withoutQuestions,
  decides: 'values',
  windows: ({ windows }) => windows,
  restartsAt: () => undefined,
  owns: true,
  notWithdrawable: () => undefined,
  overridesHolds: () => false,
  protectionNoun: () => undefined,
  mayChange(policy) {
    const proposals = [...policy.windows, otherwiseOf(policy) ?? {}];
    return FIELD_GROUPS.filter((group) => proposals.some((values) => valueOfGroup(group, values) !== undefined));
  },

  times: ({ windows }) => windows.flatMap(({ at }) => at),

  nextChangeAfter(policy, instantMs) {
    let next = Number.POSITIVE_INFINITY;
    for (const window of policy.windows) {
      const { at } = window;
      next = Math.min(next, mayChangeAfter(at, instantMs) ?? next);
      if (isMixed(at)) next = Math.min(next, mayChangeAfter(at.filter(isAbsolute), instantMs) ?? next);
      for (const leadMs of leadsOf(window)) {
        next = Math.min(next, minusLead(mayChangeAfter(at, instantMs + leadMs), leadMs) ?? next);
      }
    }
    return Number.isFinite(next) ? next : undefined;
  },

  lastChangeUntil(policy, instantMs) {
    let last = Number.NEGATIVE_INFINITY;
    for (const window of policy.windows) {
      const { at } = window;
      last = Math.max(last, mayHaveChangedUntil(at, instantMs));
      if (isMixed(at)) last = Math.max(last, mayHaveChangedUntil(at.filter(isAbsolute), instantMs));
      for (const leadMs of leadsOf(window)) {
        last = Math.max(last, mayHaveChangedUntil(at, instantMs + leadMs) - leadMs);
      }
    }
    return last;
  },
};

function minusLead(instantMs: number | undefined, leadMs: number): number | undefined {
  return instantMs === undefined ? undefined : instantMs - leadMs;
}

/** The opening of a window that is open, or for which raises have begun (with waves: in the earliest wave). */
function openingOf(
  window: ScheduleWindow,
  instantMs: number,
): Pick<ProposedValues, 'source' | 'openSinceMs' | 'startsEarly' | 'leadWithoutWavesMs'> | undefined {
  const { at, readyLeadMs, readyInWaves } = window;
  const openSinceMs = openSince(at, instantMs);
  if (openSinceMs !== undefined) return { source: sourceOf(at, instantMs), openSinceMs };
  const [leadMs] = leadsOf(window);
  if (leadMs === undefined) return undefined;
  const opensAtMs = nextChangeOfAny(at, instantMs);
  if (opensAtMs === undefined || opensAtMs > instantMs + leadMs) return undefined;
  const early = { source: sourceOf(at, opensAtMs), openSinceMs: opensAtMs, startsEarly: true } as const;
  return readyInWaves && readyLeadMs !== undefined ? { ...early, leadWithoutWavesMs: readyLeadMs } : early;
}

/** True if a window has both absolute and recurring times. Absolute ones take precedence, so their ends matter even while both are open. */
function isMixed(at: ScheduleWindow['at']): boolean {
  return at.some(isAbsolute) && !at.every(isAbsolute);
}

function isAbsolute({ kind }: TimeSpec): boolean {
  return kind === 'interval';
}

function sourceOf(at: ScheduleWindow['at'], instantMs: number): 'absolute' | 'recurring' {
  return at.some((spec) => isAbsolute(spec) && isOpenAt(spec, instantMs)) ? 'absolute' : 'recurring';
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
