import type { FieldGroup } from '../compute/desired.ts';
import type { ComputeRecord, ManualMark } from '../records/compute-record.ts';
import { isFightStopped, released } from '../records/fights.ts';

/** The groups of fields that are left alone because of a fight. */
export function stoppedGroups(record: ComputeRecord): FieldGroup[] {
  return (['size', 'suspend_timeout'] as const).filter((group) => isFightStopped(record, group));
}

/**
 * A record in which nothing that people did by hand stands in the way any more: no fight is stopped, no change respected. The
 * marks stay, as seen long ago, or the same values would at once be noticed anew. The same record if there was nothing.
 */
export function releaseRecord(record: ComputeRecord): ComputeRecord {
  const marks = Object.entries(record.manual ?? {}).filter(([, mark]) => mark.seenAtMs > 0);
  const stopped = stoppedGroups(record).length > 0;
  if (marks.length === 0 && !stopped) return record;
  const free = stopped ? released(record) : record;
  const asOld = marks.map(([group, mark]): [string, ManualMark] => [group, { ...mark, seenAtMs: 0 }]);
  return marks.length === 0 ? free : { ...free, manual: { ...record.manual, ...Object.fromEntries(asOld) } };
}
