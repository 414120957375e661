import { NEVER_SUSPENDS, type Size } from '../../compute/compute.ts';
import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../compute/compute-units.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { TraceStep } from '../trace.ts';
import { type Draft, note, stage } from './draft.ts';

/**
 * Last stage: the platform's own rules, so that nothing is sent that it refuses, or ignores for ever.
 * Source: the control API's specification and docs/policies.md, "Which policy decides".
 */
export const obeyPlatform = stage([], (draft, { compute }) => {
  if (draft.size !== null) {
    correct(draft, draft.size, 'min_above_max', ({ minCu, maxCu }) => ({ minCu: Math.min(minCu, maxCu), maxCu }));
    correct(draft, draft.size, 'span_too_wide', narrow);
  }
  const { maxCu } = draft.size ?? compute;
  const timeout = draft.suspendTimeoutSeconds;
  // It concerns a wanted timeout only: without a value the field is left as it is.
  if (timeout === null || timeout === NEVER_SUSPENDS || maxCu <= MAX_AUTOSCALING_CU) return;
  const step = { group: 'suspend_timeout', code: 'never_suspends', before: timeout, after: NEVER_SUSPENDS } as const;
  note(draft, { ...speakerOf(draft.deciders.suspend_timeout), ...step });
});

function correct(draft: Draft, before: Size, code: ReasonCode, rule: (size: Size) => Size): void {
  const after = rule(before);
  if (after.minCu === before.minCu && after.maxCu === before.maxCu) return;
  note(draft, { ...speakerOf(draft.deciders.size), group: 'size', code, before, after });
}

/** Whose value it is that the platform's rules correct. */
function speakerOf({ policy, proposal, hold, restore }: Partial<TraceStep> = {}): Partial<TraceStep> {
  return {
    ...(policy && { policy }),
    ...(proposal && { proposal }),
    ...(hold && { hold }),
    ...(restore && { restore }),
  };
}

/**
 * A range reaches 16 CU and spans 8 CU at most: a wider one loses its upper end, down to its lower one. A raised minimum came with its
 * policy.
 */
function narrow({ minCu, maxCu }: Size): Size {
  const highest = Math.min(MAX_AUTOSCALING_CU, minCu + MAX_AUTOSCALING_SPAN_CU);
  if (maxCu <= highest) return { minCu, maxCu };
  const allowed = COMPUTE_SIZES_CU.findLast((cu) => cu <= highest) ?? minCu;
  return { minCu, maxCu: Math.max(minCu, allowed) };
}
