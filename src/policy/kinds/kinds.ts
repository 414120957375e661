import type { z } from 'zod';
import type { Policy } from '../../domain/policy.ts';
import type { FileContext } from '../to-domain.ts';
import { FreezePolicy, toFreeze } from './freeze.ts';
import { HeadroomPolicy, toHeadroom } from './headroom.ts';
import { LimitsPolicy, toLimits } from './limits.ts';
import { RestartPolicy, toRestart } from './restart.ts';
import { SchedulePolicy, toSchedule } from './schedule.ts';

type Issues = z.core.$ZodIssue[];

export type KindResult =
  | { ok: true; enabled: boolean; toDomain: (context: FileContext) => Policy }
  | { ok: false; issues: Issues };

/** Every kind of policy: how it is read. A new one is one file and one line here, and one in the schema of files. */
export const KINDS: Readonly<Record<Policy['kind'], (entry: unknown) => KindResult>> = {
  schedule: (entry) => read(SchedulePolicy, entry, toSchedule),
  headroom: (entry) => read(HeadroomPolicy, entry, toHeadroom),
  limits: (entry) => read(LimitsPolicy, entry, toLimits),
  restart: (entry) => read(RestartPolicy, entry, toRestart),
  freeze: (entry) => read(FreezePolicy, entry, toFreeze),
};

function read<Written extends { enabled: boolean }>(
  schema: z.ZodType<Written>,
  entry: unknown,
  toDomain: (written: Written, context: FileContext) => Policy,
): KindResult {
  const parsed = schema.safeParse(entry);
  if (!parsed.success) return { ok: false, issues: parsed.error.issues };
  return { ok: true, enabled: parsed.data.enabled, toDomain: (context) => toDomain(parsed.data, context) };
}
