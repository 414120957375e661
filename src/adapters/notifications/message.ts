import { z } from 'zod';
import type { MessageDocument } from '../../domain/notifications/message.ts';
import { NOTIFICATION_KINDS, type NotificationKind } from '../../domain/notifications/notification.ts';

const KINDS = Object.keys(NOTIFICATION_KINDS) as [NotificationKind, ...NotificationKind[]];

/** What a webhook gets. */
export const Message = z
  .object({
    version: z.literal(1),
    id: z.string().describe('The same each time that the same message is sent; also the header webhook-id.'),
    kind: z.enum(KINDS),
    at: z.string().meta({ format: 'date-time' }).describe('When it happened or was found, in UTC.'),
    text: z.string().describe('A sentence for people.'),
    owner: z.string().nullable().describe('Null: it concerns the whole fleet.'),
    project: z.object({ id: z.string(), name: z.string() }).nullable(),
    compute: z.string().nullable().describe('Id of the compute.'),
    policy: z.string().nullable(),
    command: z.string().nullable().describe('What to type to prevent or answer it.'),
  })
  .meta({ title: 'ebb notification' }) satisfies z.ZodType<MessageDocument>;
