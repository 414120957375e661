import { messageOf } from '../../domain/notifications/message.ts';
import type { Notification } from '../../domain/notifications/notification.ts';
import { type NotifyRules, receiversOf } from '../../domain/notifications/receivers.ts';
import type { OutboxEntry } from '../../ports/outbox.ts';

/** What concerns no compute is in one order of its own. */
const FLEET = 'fleet';

/** Notifications as they wait for each of their receivers, in their order. */
export function outboxEntries({ receivers }: NotifyRules, notifications: readonly Notification[]): OutboxEntry[] {
  return notifications.flatMap((notification) =>
    receiversOf(receivers, notification).map(({ name }) => ({
      id: `${notification.id}>${name}`,
      receiver: name,
      subject: notification.computeId ?? FLEET,
      atMs: notification.atMs,
      body: JSON.stringify(messageOf(notification)),
    })),
  );
}

/** The id of the message of an entry: the same for all of its receivers. */
export function messageId({ id, receiver }: Pick<OutboxEntry, 'id' | 'receiver'>): string {
  return id.slice(0, -(receiver.length + 1));
}
