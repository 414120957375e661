import type { ComputeSettings } from '../compute.ts';
import type { Failures } from '../compute-record.ts';
import type { Gate } from './gate.ts';

/** After so many failures in a row a compute is degraded: visible, and tried again rarely. */
export const FAILURES_UNTIL_DEGRADED = 3;

const FIRST_RETRY_MS = 30_000;
const DEGRADED_RETRY_MS = 60 * 60 * 1000;

/** True if a change failed so often that it is tried again only rarely. */
export function isDegraded(failures: Failures | undefined): boolean {
  return failures !== undefined && failures.count >= FAILURES_UNTIL_DEGRADED;
}

/** When a change that failed may be tried again: after 30 s, 60 s, then every hour. Milliseconds since the epoch. */
export function retryAtMs(failures: Failures): number {
  return failures.lastAtMs + (isDegraded(failures) ? DEGRADED_RETRY_MS : FIRST_RETRY_MS * 2 ** (failures.count - 1));
}

/** A change that failed is tried again with growing waits; one that wants something else starts anew. */
export const failedBefore: Gate = ({ change, record, nowMs }) => {
  const failures = record?.failures;
  if (!failures || nowMs >= retryAtMs(failures) || !wantsTheSame(change.fields, failures)) return undefined;
  const code = isDegraded(failures) ? 'degraded' : 'retry_later';
  return { code, message: `failed ${failures.count}×, last: ${failures.message}`, untilMs: retryAtMs(failures) };
};

function wantsTheSame(fields: Partial<ComputeSettings>, { desired }: Failures): boolean {
  return (['minCu', 'maxCu', 'suspendTimeoutSeconds'] as const).every(
    (name) => fields[name] === undefined || fields[name] === desired[name],
  );
}
