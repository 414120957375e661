import pLimit from 'p-limit';
import type { HistoryEntry } from '../../domain/records/history.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type {
  NotificationIdsDocument,
  NotificationsDocument,
  QueuedNotificationDocument,
  RetryOrDropNotifications,
} from '../../ports/notifications.ts';
import type { OperatorResult } from '../../ports/operator.ts';
import type { QueuedEntry } from '../../ports/outbox.ts';
import { auditOf, fail, type OperatorParts } from './parts.ts';

/** The most messages that are listed for each receiver and state. */
const MAX_PER_STATE = 50;
/** One command retries or drops at most this many dead entries. */
const MAX_AT_ONCE = 10_000;
const CONCURRENT_WRITES = 32;

/** Lists the outbox: waiting messages, and those that could not be sent. */
export async function listNotifications({ store }: OperatorParts): Promise<OperatorResult<NotificationsDocument>> {
  const { receivers, lost } = await store.outboxCounts();
  const notifications: QueuedNotificationDocument[] = [];
  for (const { receiver } of receivers) {
    for (const state of ['dead', 'waiting'] as const) {
      notifications.push(...(await store.outbox({ receiver, state, limit: MAX_PER_STATE })).map(documentOf));
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

/** Sends dead notifications again, or drops them. A waiting one can be dropped by its id. */
export async function retryOrDropNotifications(
  parts: OperatorParts,
  { action, target }: RetryOrDropNotifications,
): Promise<OperatorResult<NotificationIdsDocument>> {
  const { store } = parts;
  const ids = await idsOf(parts, target);
  if (ids.length === 0) {
    const message = `${target} is neither a receiver with dead notifications nor the id of a notification: see ebb notify list`;
    return fail('not_found', message);
  }
  // The audit entry comes first, so that no notification changes without an entry.
  await store.appendHistory([await auditEntry(parts, { action, target }, ids.length)]);
  const done = await pLimit(CONCURRENT_WRITES).map(ids, (id) =>
    action === 'drop' ? store.finishOutbox(id) : store.updateOutbox(id, { state: 'waiting', tries: 0 }),
  );
  return { ok: true, value: { ids: ids.filter((_, index) => done[index]) } };
}

/**
 * Returns the ids of a receiver's dead notifications if the target is a receiver. If the target is the id of a notification (it ends with
 * `>RECEIVER`), returns this id, or none if there is no such notification.
 */
async function idsOf({ store }: OperatorParts, target: string): Promise<string[]> {
  const receiver = target.slice(target.lastIndexOf('>') + 1);
  const dead = await store.outbox({ receiver, state: 'dead', limit: MAX_AT_ONCE });
  if (receiver === target) return dead.map(({ id }) => id);
  const waiting = await store.outbox({ receiver, state: 'waiting', limit: MAX_AT_ONCE });
  return [...dead, ...waiting].some(({ id }) => id === target) ? [target] : [];
}

async function auditEntry(
  parts: OperatorParts,
  { action, target }: RetryOrDropNotifications,
  count: number,
): Promise<HistoryEntry> {
  const done = action === 'retry' ? 'sent again' : 'dropped';
  const message = `${done}: ${count === 1 ? 'a notification' : `${count} notifications`}, ${target}`;
  const owner = parts.caller?.who ?? '';
  const code = `notifications_${action}`;
  return auditOf(parts, { kind: 'notification', code, message, owner, atMs: await parts.now() });
}
