import { FIELD_GROUPS } from '../../compute/compute.ts';
import { note, stage } from './draft.ts';

/** Before holds: where no policy sets a value, a person may have wanted back what the compute had before ebb. */
export const restoreBaseline = stage([], (draft, { restore, baseline }) => {
  if (!restore || !baseline) return;
  const { minCu, maxCu, suspendTimeoutSeconds } = baseline;
  const { fields = FIELD_GROUPS } = restore;
  if (draft.size === null && fields.includes('size')) {
    draft.restoring.push('size');
    note(draft, { group: 'size', code: 'restore', restore, after: { minCu, maxCu } });
  }
  if (draft.suspendTimeoutSeconds === null && fields.includes('suspend_timeout')) {
    draft.restoring.push('suspend_timeout');
    note(draft, { group: 'suspend_timeout', code: 'restore', restore, after: suspendTimeoutSeconds });
  }
});

/** Fourth stage: what a person has set for a while replaces what policies want; of several holds the newest counts. */
export const applyHolds = stage([], (draft, { holds }) => {
  const sized = holds.find(({ size }) => size !== undefined);
  if (sized?.size) note(draft, { group: 'size', code: 'hold', hold: sized, before: draft.size, after: sized.size });
  const timed = holds.find(({ suspendTimeoutSeconds }) => suspendTimeoutSeconds !== undefined);
  if (timed?.suspendTimeoutSeconds !== undefined) {
    const before = draft.suspendTimeoutSeconds;
    note(draft, { group: 'suspend_timeout', code: 'hold', hold: timed, before, after: timed.suspendTimeoutSeconds });
  }
});
