import type { Failures } from '../../records/compute-record.ts';
import { isDegraded, sameFields } from '../../records/failures.ts';
import type { Gate } from './gate.ts';

const FIRST_RETRY_MS = 20_000;
const DEGRADED_RETRY_MS = 60 * 60 * 1000;

/** When a change that failed may be tried again: after 20 s, 40 s, then every hour. Milliseconds since the epoch. */
export function retryAtMs(failures: Failures): number {
  return failures.lastAtMs + (isDegraded(failures) ? DEGRADED_RETRY_MS : FIRST_RETRY_MS * 2 ** (failures.count - 1));
}

/** A change that failed is tried again with growing waits; one that wants something else starts anew. */
export const failedBefore: Gate = ({ change, record, nowMs }) => {
  const failures = record?.failures?.[change.group];
  if (!failures || nowMs >= retryAtMs(failures) || !sameFields(change.fields, failures.desired)) return undefined;
  const code = isDegraded(failures) ? 'degraded' : 'retry_later';
  return { code, message: `failed ${failures.count}×, last: ${failures.message}`, untilMs: retryAtMs(failures) };
};
