import { isoInstant } from '../../domain/time/instants.ts';
import type {
  NotificationIdsDocument,
  NotificationsDocument,
  QueuedNotificationDocument,
  RetryOrDropNotifications,
} from '../../ports/notifications.ts';
import type { OperatorResult } from '../../ports/operator.ts';
import type { QueuedEntry } from '../../ports/outbox.ts';
import { fail, type OperatorParts } from './parts.ts';

/** So many of each receiver and state are listed. */
const MOST_LISTED = 50;
/** So many dead ones are retried or dropped at a time. */
const MOST_AT_ONCE = 10_000;

/** What waits in the outbox, and what could not be sent. */
export async function listNotifications({ store }: OperatorParts): Promise<OperatorResult<NotificationsDocument>> {
  const { receivers, lost } = await store.outboxCounts();
  const notifications: QueuedNotificationDocument[] = [];
  for (const { receiver } of receivers) {
    for (const state of ['dead', 'waiting'] as const) {
      notifications.push(...(await store.outbox({ receiver, state, limit: MOST_LISTED })).map(documentOf));
    }
  }
  const counts = receivers.map(({ oldestAtMs, ...count }) => ({
    ...count,
    oldest_at: oldestAtMs === undefined ? null : isoInstant(oldestAtMs),
  }));
  return { ok: true, value: { receivers: counts, lost, notifications } };
}

function documentOf({ id, receiver, state, tries, error, atMs, body }: QueuedEntry): QueuedNotificationDocument {
  const { text } = JSON.parse(body) as { text: string };
  return { id, receiver, state, tries, error: error ?? null, at: isoInstant(atMs), text };
}

/** Sends dead notifications again, or forgets them; one that waits can be forgotten by its id. */
export async function retryOrDropNotifications(
  { store }: OperatorParts,
  { action, target }: RetryOrDropNotifications,
): Promise<OperatorResult<NotificationIdsDocument>> {
  const dead = await store.outbox({ receiver: target, state: 'dead', limit: MOST_AT_ONCE });
  const ids = dead.length > 0 ? dead.map(({ id }) => id) : [target];
  const done: string[] = [];
  for (const id of ids) {
    const isDone =
      action === 'drop' ? await store.removeOutbox(id) : await store.deferOutbox(id, { state: 'waiting', tries: 0 });
    if (isDone) done.push(id);
  }
  if (done.length > 0) return { ok: true, value: { ids: done } };
  return fail('not_found', `${target} is no receiver with dead notifications, and the id of none: see ebb notify list`);
}
