import { formatDuration } from '../../domain/compute/compute-units.ts';
import { leadOf } from '../../domain/notifications/coming-change.ts';
import { type DisruptionRule, resolveDisruption } from '../../domain/policy/disruption.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { LintRule, Remark } from './rule.ts';

const KINDS: ReadonlySet<Policy['kind']> = new Set<Policy['kind']>(['schedule', 'limits', 'headroom', 'budget']);

/**
 * A `deadline` shorter than `notify_before`. Whether a change must wait is only known when it becomes due, so the restart at the deadline
 * is announced then.
 */
export const deadlineBeforeNotice: LintRule = function* ({ policies, disruption, notifyBeforeMs }) {
  for (const policy of policies) {
    const leadMs = leadOf(policy, notifyBeforeMs);
    if (leadMs === undefined || policy.mode === 'observe' || !KINDS.has(policy.kind)) continue;
    const rules = resolveDisruption(policy.disruption, disruption);
    for (const direction of ['raise', 'lower'] as const) {
      const deadlineMs = restartDeadlineMs(rules[direction]);
      if (deadlineMs === undefined || deadlineMs >= leadMs) continue;
      const [deadline, lead] = [deadlineMs, leadMs].map((ms) => formatDuration(ms / 1000));
      const message = [
        `${direction} of ${policy.name} restarts after a deadline of ${deadline}, which is announced when the wait begins: ${deadline} before, not ${lead} as `,
        `notify_before says; write a deadline of at least ${lead}, or a shorter notify_before`,
      ].join('');
      const at = policy.disruption?.[direction] ? ['disruption', direction, 'deadline'] : ['name'];
      yield { code: 'deadline-before-notice', policy, at, message } satisfies Remark;
    }
  }
};

/** The time after which a waiting change is made anyway, in milliseconds; undefined if the change does not wait, or is skipped at its deadline. */
function restartDeadlineMs({ when, deadlineMs, atDeadline }: DisruptionRule): number | undefined {
  return when === 'any' || atDeadline === 'skip' ? undefined : deadlineMs;
}
