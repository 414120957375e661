import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { newlyDegraded } from '../../domain/records/failures.ts';
import type { ComputeEvent, ReportEvent } from '../../ports/compute-events.ts';

/** Returns the events to report once `after` is stored: one if changes have become degraded since `before`, otherwise none. */
export function degradedEvents(
  compute: { projectId: string; computeId: string },
  before: ComputeRecord,
  after: ComputeRecord,
): ComputeEvent[] {
  const degraded = newlyDegraded(before, after);
  if (!degraded) return [];
  const { desired, count, message } = degraded;
  return [{ kind: 'degraded', compute, desired, failures: count, message }];
}

export function reportDegraded(
  { reportEvent }: { reportEvent: ReportEvent },
  ...[compute, before, after]: Parameters<typeof degradedEvents>
): void {
  for (const event of degradedEvents(compute, before, after)) reportEvent(event);
}
