import type { Compute } from '../../domain/compute/compute.ts';
import type { Notification } from '../../domain/notifications/notification.ts';
import { messageOf, type NotifyRules, receiversOf } from '../../domain/notifications/notification.ts';
import { type RecordChange, recordNotifications } from '../../domain/notifications/of-record.ts';
import type { OutboxEntry } from '../../ports/outbox.ts';
import type { CompiledRules } from '../rules.ts';

type NotifyBy = Pick<CompiledRules, 'policies' | 'notify'>;

/** Outbox entries stored together with a record; none where there are no receivers. */
export function recordEntries(
  rules: NotifyBy,
  change: RecordChange,
  ownerOf: (compute: Compute) => string,
): OutboxEntry[] {
  const notifications = rules.notify.receivers.length === 0 ? [] : recordNotifications(change);
  return notifications.length === 0 ? [] : entriesOf(rules, ownerOf(change.compute), notifications);
}

/** Notifications about a compute as they wait for its receivers: its owner's, and those that the policy names. */
export function entriesOf(
  { policies, notify }: NotifyBy,
  owner: string,
  notifications: readonly Notification[],
): OutboxEntry[] {
  const named = (name: string | undefined) => policies.set.policies.find((policy) => policy.name === name)?.notify;
  const addressed = notifications.map((one) => ({ ...one, owner, receivers: named(one.policy) ?? [] }));
  return outboxEntries(notify, addressed);
}

/** Notifications as they wait for each of their receivers, in their order. */
export function outboxEntries({ receivers }: NotifyRules, notifications: readonly Notification[]): OutboxEntry[] {
  return notifications.flatMap((notification) =>
    receiversOf(receivers, notification).map(({ name }) => ({
      id: `${notification.id}>${name}`,
      receiver: name,
      subject: subjectOf(notification),
      atMs: notification.atMs,
      body: JSON.stringify(messageOf(notification)),
    })),
  );
}

/** Messages about no compute are ordered by kind and owner: a digest that is refused does not delay a freeze. */
function subjectOf({ computeId, kind, owner }: Notification): string {
  return computeId ?? (owner === undefined ? kind : `${kind} ${owner}`);
}

/** The id of the message of an entry: the same for all of its receivers. */
export function messageId({ id, receiver }: Pick<OutboxEntry, 'id' | 'receiver'>): string {
  return id.slice(0, -(receiver.length + 1));
}
