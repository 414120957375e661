import type { Compute } from '../../domain/compute/compute.ts';
import type { Notification } from '../../domain/notifications/notification.ts';
import { type RecordChange, recordNotifications } from '../../domain/notifications/of-record.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { OutboxEntry } from '../../ports/outbox.ts';
import type { CompiledRules } from '../rules.ts';
import { outboxEntries } from './outbox-entries.ts';

type NotifyBy = Pick<CompiledRules, 'policies' | 'costs' | 'notify'>;

/** What goes to the outbox together with a record; nothing where there are no receivers. */
export function recordEntries(rules: NotifyBy, change: RecordChange): OutboxEntry[] {
  if (rules.notify.receivers.length === 0) return [];
  return entriesOf(rules, change.compute, recordNotifications(change));
}

/** Notifications about a compute as they wait for its receivers: its owner's, and those that the policy names. */
export function entriesOf(
  { policies, costs, notify }: NotifyBy,
  compute: Compute,
  notifications: readonly Notification[],
): OutboxEntry[] {
  if (notifications.length === 0) return [];
  const owner = ownersOf({ rules: costs.owners, policies, computes: [compute] })(compute);
  const named = (name: string | undefined) => policies.set.policies.find((policy) => policy.name === name)?.notify;
  const addressed = notifications.map((one) => ({ ...one, owner, receivers: named(one.policy) ?? [] }));
  return outboxEntries(notify, addressed);
}
