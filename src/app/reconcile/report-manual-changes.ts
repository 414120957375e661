import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { describeManualChange } from '../../domain/plan/manual-changes.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Notifier } from '../../ports/notifier.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { knownRecord } from '../fleet/known-records.ts';

interface ManualChangeDeps {
  fleet: Fleet;
  notify: Notifier;
}

/** Says it when a change by hand is first seen; until when it is respected, only where policies want something else. */
export function reportManualChanges(
  deps: ManualChangeDeps,
  stored: ReadonlyMap<string, ComputeRecord>,
  { compute, record, plan }: EvaluatedCompute,
): void {
  const before = knownRecord(deps, stored, compute.computeId);
  for (const group of ['size', 'suspend_timeout'] as const) {
    const mark = record.manual?.[group];
    if (!mark || mark.seenAtMs === before?.manual?.[group]?.seenAtMs) continue;
    const { lastApplied: applied } = record;
    const change = describeManualChange(group, applied, mark.fields);
    const respected = plan.waiting.find(
      ({ gate: { code, message } }) => code === 'manual_change' && message.startsWith(change),
    );
    deps.notify({ kind: 'manual_change', compute, group, applied, message: respected?.gate.message ?? change });
  }
}
