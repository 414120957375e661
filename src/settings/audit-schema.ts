import { resolve } from 'node:path';
import { z } from 'zod';
import type { Receiver } from '../domain/notifications/notification.ts';
import { countSecrets, destinationOf, destinationShape, hasOneUrl, NEEDS_ONE_URL } from './notify-schema.ts';
import { keyPath } from './schema-parts.ts';

/** Where audit entries are copied in addition to the store. */
export interface AuditCopies {
  /** Absolute. */
  file?: string;
  webhook?: Receiver;
}

const WEBHOOK_FORM = 'must be a mapping such as {url: "https://logs.example/ebb", secret_env: EBB_NOTIFY_SECRET}';

const webhook = z
  .strictObject(destinationShape, { error: WEBHOOK_FORM })
  .refine(hasOneUrl, NEEDS_ONE_URL)
  .refine((destination) => countSecrets(destination) === 1, {
    error: 'must have secret_env or secret_file: what it gets is signed',
  });

const shape = { file: keyPath().optional(), webhook: webhook.optional() };

export const AUDIT_KEYS: readonly string[] = Object.keys(shape);
export const WEBHOOK_KEYS: readonly string[] = Object.keys(destinationShape);

export const auditSchema = z
  .strictObject(shape, { error: 'must be a mapping such as {file: /var/log/ebb/audit.jsonl}' })
  .refine((audit) => audit.file !== undefined || audit.webhook !== undefined, { error: 'must have file or webhook' });

/** Relative paths start from `base`. */
export function auditCopiesOf(
  audit: z.output<typeof auditSchema> | undefined,
  options: { allowedOrigins: readonly string[]; base: string; settingsFile: string },
): AuditCopies {
  const { allowedOrigins, base, settingsFile: file } = options;
  return {
    ...(audit?.file !== undefined && { file: resolve(base, audit.file) }),
    ...(audit?.webhook && {
      webhook: { name: 'audit', to: 'webhook', allowedOrigins, file, ...destinationOf(audit.webhook) },
    }),
  };
}
