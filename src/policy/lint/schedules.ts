import { formatSize, formatSuspendTimeout } from '../../domain/compute/compute-units.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { ScheduleValues } from '../../domain/policy/schedule-window.ts';
import type { PlacedValues } from '../kinds/schedule.ts';

/** A field that schedules set, by its key in policy files. */
export type Field = 'size' | 'suspend_after';
export const FIELDS: readonly Field[] = ['size', 'suspend_after'];

/** The value of a field in the form of policy files, so that equal values have equal texts; undefined if there is none. */
export function proposedValue(values: ScheduleValues, field: Field): string | undefined {
  if (field === 'size') return values.size && formatSize(values.size);
  const { suspendTimeoutSeconds: seconds } = values;
  return seconds === undefined ? undefined : formatSuspendTimeout(seconds);
}

/** The timeout that applies together with some values of a schedule: the timeout among them, or else that of `otherwise`. */
export function timeoutWith({ otherwise }: SchedulePolicy, { values }: PlacedValues): number | undefined {
  if (values.suspendTimeoutSeconds !== undefined || typeof otherwise === 'string') return values.suspendTimeoutSeconds;
  return otherwise.suspendTimeoutSeconds;
}
