import type { Policy, SchedulePolicy, ScheduleValues, ScheduleWindow } from '../../domain/policy.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/settings-text.ts';

/** A field that schedules decide, as the language names it. */
export type Field = 'size' | 'suspend_after';
export const FIELDS: readonly Field[] = ['size', 'suspend_after'];

/** What is wanted of a field, as people write it: equal if and only if the same is wanted. Undefined: no opinion. */
export function wish(values: ScheduleValues, field: Field): string | undefined {
  if (field === 'size') return values.size && formatSize(values.size);
  const { suspendTimeoutSeconds: seconds } = values;
  return seconds === undefined ? undefined : formatSuspendTimeout(seconds);
}

/** What a schedule wants, one entry for each window and one for `otherwise`, and where it stands in the policy. */
export interface Wanted {
  values: ScheduleValues;
  at: readonly PropertyKey[];
  /** Absent for `otherwise`. */
  window?: ScheduleWindow;
}

export function wantedBy({ windows, otherwise }: SchedulePolicy): Wanted[] {
  const wanted: Wanted[] = windows.map((window, index) => ({ values: window, at: ['windows', index], window }));
  return typeof otherwise === 'string' ? wanted : [...wanted, { values: otherwise, at: ['otherwise'] }];
}

/** The timeout that goes with some values of a schedule: its own, or what `otherwise` says where a window says nothing. */
export function timeoutWith({ otherwise }: SchedulePolicy, { values }: Wanted): number | undefined {
  if (values.suspendTimeoutSeconds !== undefined || typeof otherwise === 'string') return values.suspendTimeoutSeconds;
  return otherwise.suspendTimeoutSeconds;
}

export function isKind<K extends Policy['kind']>(kind: K) {
  return (policy: Policy): policy is Extract<Policy, { kind: K }> => policy.kind === kind;
}
