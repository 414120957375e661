/** Schemas that fleet files and requests share. */
import { z } from 'zod';
import type { Consumption, Load } from './fleet.ts';

/** Leaves out undefined values, so that changes can be spread or assigned over existing values. */
export function withoutUndefined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

const cu = z.number().min(0).max(56);
const utcOffset = { utc_offset_hours: z.number().min(-12).max(14).default(0) };
const everySeconds = (seconds: number) => z.number().int().min(2).max(86_400).default(seconds);

export const loadSchema = z.discriminatedUnion('class', [
  z.strictObject({ class: z.enum(['office_users', 'night_batch', 'bursty_api']), cu: cu.default(1), ...utcOffset }),
  z.strictObject({ class: z.literal('cron_ping'), cu: cu.default(0), every_seconds: everySeconds(60) }),
  z.strictObject({ class: z.literal('queue_poller'), cu: cu.default(0), every_seconds: everySeconds(10) }),
  z.strictObject({ class: z.literal('replication'), cu: cu.default(0) }),
  z.strictObject({
    class: z.literal('idle_in_transaction'),
    hours: z.number().positive().max(10).default(4),
    ...utcOffset,
  }),
]);

export function toLoad(parsed: z.output<typeof loadSchema>): Load {
  switch (parsed.class) {
    case 'cron_ping':
    case 'queue_poller':
      return { class: parsed.class, cu: parsed.cu, everySeconds: parsed.every_seconds };
    case 'replication':
      return { class: parsed.class, cu: parsed.cu };
    case 'idle_in_transaction':
      return { class: parsed.class, hours: parsed.hours, utcOffsetHours: parsed.utc_offset_hours };
    default:
      return { class: parsed.class, cu: parsed.cu, utcOffsetHours: parsed.utc_offset_hours };
  }
}

const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

export const pastOperationSchema = z
  .object({
    action: z.string().min(1),
    status: z.string().default('finished'),
    created_at: instant,
    duration_ms: z.number().int().min(0).default(1000),
  })
  .transform(({ created_at, duration_ms, ...same }) => ({
    ...same,
    createdAtMs: created_at,
    durationMs: duration_ms,
  }));

export const consumptionSchema = z
  .strictObject({
    routes: z.enum(['both', 'projects', 'none']).optional(),
    zeros: z.enum(['omitted', 'sent']).optional(),
    delay_minutes: z.number().min(0).max(1440).optional(),
    stalls: z.array(z.strictObject({ from: instant, to: instant })).optional(),
    corrections: z.number().min(0).max(1).optional(),
    deleted: z.enum(['listed', 'hidden']).optional(),
    branches_from: instant.optional(),
    open_bucket: z.enum(['omitted', 'sent']).optional(),
    unattributed: z.number().min(0).max(0.9).optional(),
  })
  .transform((parsed): Partial<Consumption> => {
    const { delay_minutes, stalls, branches_from, open_bucket, ...same } = parsed;
    return withoutUndefined({
      ...same,
      delayMinutes: delay_minutes,
      stalls: stalls?.map(({ from, to }) => ({ fromMs: from, toMs: to })),
      branchesFromMs: branches_from,
      openBucket: open_bucket,
    });
  });
