import type { Compute } from '../compute/compute.ts';
import { formatSize } from '../compute/compute-units.ts';
import { type EvaluatedCompute, evaluateNow, HEALTHY_GUARDS, type Situation } from '../evaluate/evaluate.ts';
import type { Action } from '../plan/plan.ts';
import { isoInstant } from '../time/units.ts';
import type { Notification } from './notification.ts';

/**
 * The notification about the next change that will disconnect clients of a compute, at its next boundary or at the end of a wait, if the
 * compute stays as it is. `actions` returns its actions at an instant, see {@link actionsAt}; `beforeMs` the lead of notifications for
 * a policy in milliseconds, undefined for none.
 */
export function comingChange(
  { compute, plan, nextBoundaryMs }: EvaluatedCompute,
  {
    nowMs,
    actions,
    beforeMs,
  }: {
    nowMs: number;
    actions: (instantMs: number) => readonly Action[];
    beforeMs: (policy: string) => number | undefined;
  },
): Notification | undefined {
  const instants = [plan.untilMs, nextBoundaryMs].filter((ms) => ms !== undefined && ms > nowMs) as number[];
  for (const instantMs of instants.toSorted((a, b) => a - b)) {
    const [action] = actions(instantMs);
    if (!action?.disconnects) continue;
    const leadMs = beforeMs(action.policy);
    return leadMs !== undefined && instantMs - nowMs <= leadMs
      ? notificationOf(compute, action, { instantMs, nowMs })
      : undefined;
  }
  return undefined;
}

/** The actions on a compute at a future instant, if it stays as it is. */
export function actionsAt(situation: Situation, instantMs: number): readonly Action[] {
  const { plan } = evaluateNow({ ...situation, ...HEALTHY_GUARDS, nowMs: instantMs });
  return plan.verdict === 'act' ? plan.actions : [];
}

function notificationOf(
  { projectId, projectName, computeId, ...settings }: Compute,
  { kind, fields, policy }: Action,
  { instantMs, nowMs }: { instantMs: number; nowMs: number },
): Notification {
  const change =
    kind === 'restart'
      ? 'restarted'
      : `changed from ${formatSize(settings)} to ${formatSize({ ...settings, ...fields })} CU`;
  return {
    id: `change_coming:${computeId}:${instantMs}`,
    ...{ kind: 'change_coming', atMs: nowMs, projectId, projectName, computeId, policy },
    text: `${computeId} will be ${change} at ${isoInstant(instantMs)} (${policy}), which disconnects its clients`,
    command: `ebb hold ${computeId} --for 2h --reason 'not now' --freeze`,
  };
}
