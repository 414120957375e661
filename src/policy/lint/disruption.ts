import { formatDuration } from '../../domain/compute/compute-units.ts';
import { leadOf } from '../../domain/notifications/coming-change.ts';
import { type DisruptionRule, resolveDisruption } from '../../domain/policy/disruption.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { LintRule, Remark } from './rule.ts';

/** The default of `min_age`; at this age, temporary computes of CI are usually gone. */
const DEFAULT_MIN_AGE_MS = 30 * MINUTE_MS;

/** `newly_discovered: act` with a `min_age` that excludes new computes. */
export const actBeforeMinAge: LintRule = function* ({ policies }) {
  for (const policy of policies) {
    if (policy.disruption?.newlyDiscovered !== 'act' || policy.select.minAgeMs < DEFAULT_MIN_AGE_MS) continue;
    const minutes = Math.round(policy.select.minAgeMs / MINUTE_MS);
    const message = [
      `newly_discovered: act has no effect on new computes: they are not selected before they are ${minutes} minutes old`,
      '; write min_age: 0s in its selector',
    ].join('');
    yield { code: 'act-before-min-age', policy, at: ['disruption'], message } satisfies Remark;
  }
};

/** The kinds whose restarts may have a deadline. */
const DEADLINE_KINDS: ReadonlySet<Policy['kind']> = new Set<Policy['kind']>([
  'schedule',
  'limits',
  'headroom',
  'budget',
]);

/**
 * A `deadline` shorter than `notify_before`. Whether a change must wait is only known when it becomes due, so the restart at the deadline
 * is announced then.
 */
export const deadlineBeforeNotice: LintRule = function* ({ policies, disruption, notifyBeforeMs }) {
  for (const policy of policies) {
    const leadMs = leadOf(policy, notifyBeforeMs);
    if (leadMs === undefined || policy.mode === 'observe' || !DEADLINE_KINDS.has(policy.kind)) continue;
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
