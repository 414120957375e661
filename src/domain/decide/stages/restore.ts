import { note, stage } from './draft.ts';

/** Before holds: where no policy has an opinion, a person may have wanted back what the compute had before ebb. */
export const restoreBaseline = stage([], (draft, { restore, baseline }) => {
  if (!restore || !baseline) return;
  const { minCu, maxCu, suspendTimeoutSeconds } = baseline;
  if (draft.size === null) note(draft, { group: 'size', code: 'restore', restore, after: { minCu, maxCu } });
  if (draft.suspendTimeoutSeconds === null) {
    note(draft, { group: 'suspend_timeout', code: 'restore', restore, after: suspendTimeoutSeconds });
  }
});
