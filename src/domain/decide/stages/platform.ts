import { NEVER_SUSPENDS, type Size, sameSize } from '../../compute/compute.ts';
import { COMPUTE_SIZES_CU, MAX_AUTOSCALING_CU, MAX_AUTOSCALING_SPAN_CU } from '../../compute/compute-units.ts';
import type { ReasonCode } from '../../compute/reasons.ts';
import type { TraceStep } from '../trace.ts';
import { type Draft, note, stage } from './draft.ts';

/**
 * Corrects values that the platform would refuse or ignore.
 * Source: the control API's specification and docs/policies.md, "Which policy decides".
 */
export const obeyPlatform = stage([], (draft, { compute }) => {
  if (draft.size !== null) {
    applyRule(draft, draft.size, 'min_above_max', ({ minCu, maxCu }) => ({ minCu: Math.min(minCu, maxCu), maxCu }));
    applyRule(draft, draft.size, 'span_too_wide', narrowSpan);
  }
  const { maxCu } = draft.size ?? compute;
  const timeout = draft.suspendTimeoutSeconds;
  // Without a wanted timeout the field is left as it is.
  if (timeout === null || timeout === NEVER_SUSPENDS || maxCu <= MAX_AUTOSCALING_CU) return;
  const step = { group: 'suspend_timeout', code: 'never_suspends', before: timeout, after: NEVER_SUSPENDS } as const;
  note(draft, { ...deciderFields(draft.deciders.suspend_timeout), ...step });
});

function applyRule(draft: Draft, before: Size, code: ReasonCode, rule: (size: Size) => Size): void {
  const after = rule(before);
  if (sameSize(after, before)) return;
  note(draft, { ...deciderFields(draft.deciders.size), group: 'size', code, before, after });
}

/** The source of the corrected value. */
function deciderFields({ policy, proposal, hold, restore }: Partial<TraceStep> = {}): Partial<TraceStep> {
  return {
    ...(policy && { policy }),
    ...(proposal && { proposal }),
    ...(hold && { hold }),
    ...(restore && { restore }),
  };
}

/** Lowers the maximum of a range that ends above 16 CU or spans more than 8 CU, at most down to its minimum. */
function narrowSpan({ minCu, maxCu }: Size): Size {
  const highest = Math.min(MAX_AUTOSCALING_CU, minCu + MAX_AUTOSCALING_SPAN_CU);
  if (maxCu <= highest) return { minCu, maxCu };
  const allowed = COMPUTE_SIZES_CU.findLast((cu) => cu <= highest) ?? minCu;
  return { minCu, maxCu: Math.max(minCu, allowed) };
}
