import { messageOf } from '../../domain/notifications/message.ts';
import type { Notification } from '../../domain/notifications/notification.ts';
import { type NotifyRules, receiversOf } from '../../domain/notifications/receivers.ts';
import type { OutboxEntry } from '../../ports/outbox.ts';

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
