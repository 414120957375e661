import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { ScheduleValues } from '../../domain/policy/schedule-window.ts';
import type { Wanted } from '../kinds/schedule.ts';

/** A field that schedules decide, as the language names it. */
export type Field = 'size' | 'suspend_after';
export const FIELDS: readonly Field[] = ['size', 'suspend_after'];

/** A field's wish as people write it: equal if and only if the same is wanted. Undefined: no value. */
export function proposedValue(values: ScheduleValues, field: Field): string | undefined {
  if (field === 'size') return values.size && formatSize(values.size);
  const { suspendTimeoutSeconds: seconds } = values;
  return seconds === undefined ? undefined : formatSuspendTimeout(seconds);
}

/** The timeout beside some values of a schedule: their own, or that of `otherwise` where a window has none. */
export function timeoutWith({ otherwise }: SchedulePolicy, { values }: Wanted): number | undefined {
  if (values.suspendTimeoutSeconds !== undefined || typeof otherwise === 'string') return values.suspendTimeoutSeconds;
  return otherwise.suspendTimeoutSeconds;
}
