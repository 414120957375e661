/** Notifications as the API shows them, and what may be told about them. */
import { z } from 'zod';
import type {
  NotificationIdsDocument,
  NotificationsDocument,
  RetryOrDropNotifications,
} from '../../../ports/notifications.ts';
import { age, instant, text } from './documents.ts';

const Queued = z.object({
  id: text,
  receiver: text,
  state: z.enum(['waiting', 'dead']),
  tries: z.number().int().meta({ description: 'How often it was tried in vain.' }),
  error: text.nullable().meta({ description: 'Why it failed last.' }),
  at: instant,
  text,
});

export const Notifications: z.ZodType<NotificationsDocument> = z.object({
  receivers: z.array(
    z.object({
      receiver: text,
      waiting: z.number().int(),
      dead: z.number().int(),
      oldest_at: instant.nullable().meta({ description: 'Since when the oldest waits.' }),
    }),
  ),
  lost: z.number().int().meta({ description: 'How many were lost because more came than the store keeps.' }),
  notifications: z.array(Queued),
  ...age,
});

export const NotificationIds: z.ZodType<NotificationIdsDocument> = z.object({ ids: z.array(text) });

export const RetryOrDropBody = z.strictObject({
  action: z.enum(['retry', 'drop']),
  target: z
    .string()
    .min(1)
    .max(500)
    .describe('A receiver, of which all dead ones are meant; or the id of one notification.'),
}) satisfies z.ZodType<RetryOrDropNotifications>;
