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
import { canBeFolded } from './pace.ts';

/** Returns the outbox entries to store with a changed record, for the owner's receivers and those that the policy names. */
export function recordEntries(
  { policies, notify }: Pick<CompiledRules, 'policies' | 'notify'>,
  change: RecordChange,
  ownerOf: (compute: Compute) => string,
): OutboxEntry[] {
  const notifications = notify.receivers.length === 0 ? [] : recordNotifications(change);
  if (notifications.length === 0) return [];
  const owner = ownerOf(change.compute);
  const addressed = notifications.map((notification) => {
    const policy = policies.set.policies.find(({ name }) => name === notification.policy);
    return { ...notification, owner, receivers: policy?.notify ?? [] };
  });
  return outboxEntries(notify, addressed);
}

/** Returns the outbox entries of notifications, in their order: one for each receiver. */
export function outboxEntries(
  { receivers, statusUrl }: NotifyRules,
  notifications: readonly Notification[],
): OutboxEntry[] {
  return notifications.flatMap((notification) =>
    receiversOf(receivers, notification).map(({ name }) => outboxEntry(notification, name, statusUrl)),
  );
}

export function outboxEntry(notification: Notification, receiver: string, statusUrl?: string): OutboxEntry {
  return {
    id: `${notification.id}>${receiver}`,
    receiver,
    subject: subjectOf(notification),
    atMs: notification.atMs,
    body: JSON.stringify(messageOf(notification, statusUrl)),
  };
}

/**
 * Messages of one subject wait for each other. Those about no compute, or that may be folded, are separated by kind and owner, so that a
 * refused digest does not delay a freeze.
 */
function subjectOf({ computeId, kind, owner }: Notification): string {
  if (computeId !== undefined && !canBeFolded(kind)) return computeId;
  return owner === undefined ? kind : `${kind} ${owner}`;
}

/** Returns the id of an entry's message, the same for all receivers. */
export function messageId({ id, receiver }: Pick<OutboxEntry, 'id' | 'receiver'>): string {
  return id.slice(0, -(receiver.length + 1));
}
