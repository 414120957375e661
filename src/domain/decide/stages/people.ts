import { FIELD_GROUPS, settingOf, valueOfGroup } from '../../compute/compute.ts';
import { note, stage } from './draft.ts';

/** Runs before holds. Notes which policies set values, and applies a requested restore to fields that no policy sets. */
export const restoreBaseline = stage([], (draft, { restore, baseline }) => {
  for (const group of FIELD_GROUPS) {
    if (valueOfGroup(group, draft) !== null) draft.setBy[group] = draft.deciders[group]?.policy?.name ?? '';
    else if (restore && baseline && (restore.fields ?? FIELD_GROUPS).includes(group)) {
      note(draft, { group, code: 'restore', restore, after: settingOf(group, baseline) });
    }
  }
});

/** Applies holds, which replace the values of policies; the newest that sets a field wins. */
export const applyHolds = stage([], (draft, { holds }) => {
  for (const group of FIELD_GROUPS) {
    const hold = holds.find((one) => valueOfGroup(group, one) !== undefined);
    const after = hold && valueOfGroup(group, hold);
    if (hold && after !== undefined)
      note(draft, { group, code: 'hold', hold, before: valueOfGroup(group, draft), after });
  }
});
