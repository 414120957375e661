import type { ComputeSettings } from '../compute/compute.ts';
import type { FieldGroup } from '../compute/desired.ts';
import { FIELD_GROUPS } from '../compute/field-groups.ts';
import type { Directives, RestartWindow } from '../policy/directive.ts';
import type { EffectivePolicies } from '../policy/effective-policies.ts';
import type { SchedulePolicy } from '../policy/kinds/schedule.ts';
import type { Policy } from '../policy/policy.ts';
import { compareProposals, type ProposedValues } from '../policy/proposed-value.ts';

/** What decides at an instant, and whether openings for restarts are asked about too. */
export interface Question {
  effective: EffectivePolicies;
  baseline: ComputeSettings | undefined;
  restarts: boolean;
}

/**
 * True if what is wanted may change when this policy changes, as long as the policies that decide now don't change. One that is
 * outranked whatever it says need not be followed.
 */
export function mayDecide(policy: Policy, policyIndex: number, question: Question): boolean {
  const { effective, baseline, restarts } = question;
  // Freezes stop writes and want nothing.
  if (policy.kind === 'freeze') return false;
  if (policy.kind === 'restart')
    return restarts && !isOutranked(policy, policyIndex, effective.enforced.restart[0] ?? effective.all.restart[0]);
  if (policy.kind !== 'schedule') return true;
  const views = policy.mode === 'enforce' ? [effective.all, effective.enforced] : [effective.all];
  // Both groups, whichever is asked about: above some size the platform never suspends.
  return FIELD_GROUPS.some(
    (group) =>
      // Windows alone change: what `otherwise` proposes, it proposes at all times.
      policy.windows.some((window) => proposedFor(group, window) !== undefined) &&
      views.some((view) => mayWin(policy, policyIndex, winnerOf(view, group, baseline))),
  );
}

/** The proposal that decides a group; undefined if none has a value. */
function winnerOf({ values }: Directives, group: FieldGroup, baseline: ComputeSettings | undefined) {
  return values.find((proposal) => {
    const wanted = proposedFor(group, proposal);
    return !proposal.leads && wanted !== undefined && (wanted !== 'baseline' || baseline !== undefined);
  });
}

function proposedFor(
  group: FieldGroup,
  { size, suspendTimeoutSeconds }: Pick<ProposedValues, 'size' | 'suspendTimeoutSeconds'>,
) {
  return group === 'size' ? size : suspendTimeoutSeconds;
}

function mayWin(policy: SchedulePolicy, policyIndex: number, winner: ProposedValues | undefined): boolean {
  if (!winner) return true;
  // What is about to open may raise sizes before it starts, unless a higher priority decides.
  const leads = policy.windows.some(({ readyLeadMs }) => readyLeadMs !== undefined);
  if (leads && winner.policy.priority <= policy.priority) return true;
  const isAbsolute = policy.windows.some(({ at }) => at.some(({ kind }) => kind === 'interval'));
  const source = isAbsolute ? 'absolute' : 'recurring';
  const strongest = { says: 'values', policy, policyIndex, windowIndex: Number.POSITIVE_INFINITY, source } as const;
  return compareProposals(winner, strongest) > 0;
}

function isOutranked(policy: Policy, policyIndex: number, winner: RestartWindow | undefined): boolean {
  if (!winner || winner.policyIndex === policyIndex) return false;
  if (winner.policy.mode !== policy.mode) return winner.policy.mode === 'enforce';
  const byPriority = winner.policy.priority - policy.priority;
  return byPriority > 0 || (byPriority === 0 && winner.policyIndex > policyIndex);
}
