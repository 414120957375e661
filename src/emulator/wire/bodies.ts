import { z } from 'zod';
import type { ComputeSettings } from '../world/entities.ts';

const computeChanges = z.object({
  branch_id: z.string().optional(),
  autoscaling_limit_min_cu: z.number().optional(),
  autoscaling_limit_max_cu: z.number().optional(),
  suspend_timeout_seconds: z.number().int().optional(),
  disabled: z.boolean().optional(),
  pooler_enabled: z.boolean().optional(),
  name: z.string().min(1).max(64).optional(),
  settings: z.object({ pg_settings: z.record(z.string(), z.string()).optional() }).optional(),
});

const updateCompute = z.object({ endpoint: computeChanges });

type Read<T> = { ok: true; value: T } | { ok: false; message: string };

/** Checks data from outside against a schema; the message names the first field that is wrong. */
export function read<S extends z.ZodType>(schema: S, data: unknown): Read<z.output<S>> {
  const parsed = schema.safeParse(data);
  if (parsed.success) return { ok: true, value: parsed.data };
  const issue = parsed.error.issues[0];
  const place = issue?.path.join('.');
  return { ok: false, message: place ? `${place}: ${issue?.message}` : (issue?.message ?? 'malformed') };
}

function toSettings(changes: z.output<typeof computeChanges>): Partial<ComputeSettings> {
  const settings: Partial<ComputeSettings> = {};
  if (changes.branch_id !== undefined) settings.branchId = changes.branch_id;
  if (changes.autoscaling_limit_min_cu !== undefined) settings.minCu = changes.autoscaling_limit_min_cu;
  if (changes.autoscaling_limit_max_cu !== undefined) settings.maxCu = changes.autoscaling_limit_max_cu;
  if (changes.suspend_timeout_seconds !== undefined) settings.suspendTimeoutSeconds = changes.suspend_timeout_seconds;
  if (changes.disabled !== undefined) settings.disabled = changes.disabled;
  if (changes.pooler_enabled !== undefined) settings.poolerEnabled = changes.pooler_enabled;
  if (changes.name !== undefined) settings.name = changes.name;
  if (changes.settings?.pg_settings !== undefined) settings.pgSettings = changes.settings.pg_settings;
  return settings;
}

export function readComputeChanges(body: unknown): Read<Partial<ComputeSettings>> {
  const result = read(updateCompute, body);
  return result.ok ? { ok: true, value: toSettings(result.value.endpoint) } : result;
}
