/** Documents about notifications that wait, or could not be sent, and the actions on them. */
import { z } from 'zod';
import { instant, text } from './document-fields.ts';
import { staleness } from './documents.ts';

const QueuedNotificationDocument = z.object({
  id: text,
  receiver: text,
  state: z.enum(['waiting', 'dead']),
  tries: z.number().int().meta({ description: 'How often it was tried in vain.' }),
  error: text.nullable().meta({ description: 'Why it failed last.' }),
  at: instant,
  text,
});
export type QueuedNotificationDocument = z.infer<typeof QueuedNotificationDocument>;

export const NotificationsDocument = z.object({
  receivers: z.array(
    z.object({
      receiver: text,
      waiting: z.number().int(),
      dead: z.number().int(),
      oldest_at: instant.nullable().meta({ description: 'Since when the oldest waits.' }),
    }),
  ),
  lost: z.number().int().meta({ description: 'How many were lost because more came than the store keeps.' }),
  /** The oldest of each receiver, dead ones first. */
  notifications: z.array(QueuedNotificationDocument),
  ...staleness,
});
export type NotificationsDocument = z.infer<typeof NotificationsDocument>;

/** `retry` sends dead messages again, `drop` forgets dead or waiting ones. */
export const RetryOrDropNotifications = z.strictObject({
  action: z.enum(['retry', 'drop']),
  target: z
    .string()
    .min(1)
    .max(500)
    .describe('A receiver, of which all dead ones are meant; or the id of one notification.'),
});
export type RetryOrDropNotifications = z.infer<typeof RetryOrDropNotifications>;

export const NotificationIdsDocument = z.object({ ids: z.array(text) });
export type NotificationIdsDocument = z.infer<typeof NotificationIdsDocument>;
