import type { Compute } from '../../domain/compute/compute.ts';
import {
  messageOf,
  type Notification,
  type NotifyRules,
  receiversOf,
} from '../../domain/notifications/notification.ts';
import { type RecordChange, recordNotifications } from '../../domain/notifications/of-record.ts';
import type { OutboxEntry } from '../../ports/outbox.ts';
import type { CompiledRules } from '../rules.ts';

type NotifyBy = Pick<CompiledRules, 'policies' | 'notify'>;

/** Outbox entries stored together with a record, for the owner's receivers and those that the policy names. */
export function recordEntries(
  { policies, notify }: NotifyBy,
  change: RecordChange,
  ownerOf: (compute: Compute) => string,
): OutboxEntry[] {
  const notifications = notify.receivers.length === 0 ? [] : recordNotifications(change);
  if (notifications.length === 0) return [];
  const owner = ownerOf(change.compute);
  const named = (name: string | undefined) => policies.set.policies.find((policy) => policy.name === name)?.notify;
  return outboxEntries(
    notify,
    notifications.map((one) => ({ ...one, owner, receivers: named(one.policy) ?? [] })),
  );
}

/** Notifications as they wait for each of their receivers, in their order. */
export function outboxEntries(
  { receivers, statusUrl }: NotifyRules,
  notifications: readonly Notification[],
): OutboxEntry[] {
  return notifications.flatMap((notification) =>
    receiversOf(receivers, notification).map(({ name }) => outboxEntry(notification, name, statusUrl)),
  );
}

/** A notification as it waits for one receiver. */
export function outboxEntry(notification: Notification, receiver: string, statusUrl?: string): OutboxEntry {
  return {
    id: `${notification.id}>${receiver}`,
    receiver,
    subject: subjectOf(notification),
    atMs: notification.atMs,
    body: JSON.stringify(messageOf(notification, statusUrl)),
  };
}

/** Messages about no compute are ordered by kind and owner: a digest that is refused does not delay a freeze. */
function subjectOf({ computeId, kind, owner }: Notification): string {
  return computeId ?? (owner === undefined ? kind : `${kind} ${owner}`);
}

/** The id of the message of an entry: the same for all of its receivers. */
export function messageId({ id, receiver }: Pick<OutboxEntry, 'id' | 'receiver'>): string {
  return id.slice(0, -(receiver.length + 1));
}
