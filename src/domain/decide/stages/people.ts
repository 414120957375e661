import { FIELD_GROUPS } from '../../compute/compute.ts';
import { type Draft, note, stage } from './draft.ts';

/** Before holds: applies a requested restore to fields without a value from policies. */
export const restoreBaseline = stage([], (draft, { restore, baseline }) => {
  noteSetBy(draft);
  if (!restore || !baseline) return;
  const { minCu, maxCu, suspendTimeoutSeconds } = baseline;
  const { fields = FIELD_GROUPS } = restore;
  if (draft.size === null && fields.includes('size')) {
    note(draft, { group: 'size', code: 'restore', restore, after: { minCu, maxCu } });
  }
  if (draft.suspendTimeoutSeconds === null && fields.includes('suspend_timeout')) {
    note(draft, { group: 'suspend_timeout', code: 'restore', restore, after: suspendTimeoutSeconds });
  }
});

function noteSetBy(draft: Draft): void {
  const { size, suspendTimeoutSeconds, deciders } = draft;
  if (size !== null) draft.setBy.size = deciders.size?.policy?.name ?? '';
  if (suspendTimeoutSeconds !== null) draft.setBy.suspend_timeout = deciders.suspend_timeout?.policy?.name ?? '';
}

/** Applies holds, which replace the values of policies; the newest that sets a field wins. */
export const applyHolds = stage([], (draft, { holds }) => {
  const sized = holds.find(({ size }) => size !== undefined);
  if (sized?.size) note(draft, { group: 'size', code: 'hold', hold: sized, before: draft.size, after: sized.size });
  const timed = holds.find(({ suspendTimeoutSeconds }) => suspendTimeoutSeconds !== undefined);
  if (timed?.suspendTimeoutSeconds !== undefined) {
    const before = draft.suspendTimeoutSeconds;
    note(draft, { group: 'suspend_timeout', code: 'hold', hold: timed, before, after: timed.suspendTimeoutSeconds });
  }
});
