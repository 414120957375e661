import type { ComputeSettings } from '../../compute/compute.ts';
import { note, stage } from './draft.ts';

/**
 * After schedules, before limits: in the control group of a trial a field that a withdrawn policy may change, and that no other decides,
 * is as it was before the trial.
 */
export const giveTrialBaseline = stage(['trial'], (draft, { effective, baseline, trials }) => {
  const [trial] = effective.trial;
  if (!trial) return;
  const { policy } = trial;
  const before: ComputeSettings | undefined = trials?.[policy.name]?.baseline ?? baseline;
  for (const group of trial.groups) {
    const decided = (group === 'size' ? draft.size : draft.suspendTimeoutSeconds) !== null;
    if (decided) note(draft, { group, code: 'control_group', policy });
    else if (!before) note(draft, { group, code: 'baseline_unknown', policy });
    else note(draft, { group, code: 'control_group', policy, after: settingOf(group, before) });
  }
});

function settingOf(group: 'size' | 'suspend_timeout', { minCu, maxCu, suspendTimeoutSeconds }: ComputeSettings) {
  return group === 'size' ? { minCu, maxCu } : suspendTimeoutSeconds;
}
