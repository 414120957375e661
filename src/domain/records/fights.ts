/**
 * ebb never fights a person, nor another program, in a loop: a field that is changed back three times in a day, or on three of
 * seven days, is left alone until a person releases it. Source: docs/policies.md, "People".
 */

import type { FieldGroup } from '../compute/compute.ts';
import { DAY_MS } from '../time/units.ts';
import type { ComputeRecord, ManualMark } from './compute-record.ts';

const MOST_IN_A_DAY = 3;
const MOST_DAYS_OF_SEVEN = 3;
/** More are never needed to decide. */
const MOST_KEPT = 10;

/** A record after ebb has overwritten a person's value. */
export function withReversal(record: ComputeRecord, group: FieldGroup, nowMs: number): ComputeRecord {
  const before = record.reversals?.[group] ?? [];
  return { ...record, reversals: { ...record.reversals, [group]: [...before, nowMs].slice(-MOST_KEPT) } };
}

/** True if a field has been changed back so often that it is left alone. It stays so until it is released. */
export function isFightStopped(record: ComputeRecord | undefined, group: FieldGroup): boolean {
  const reversals = record?.reversals?.[group] ?? [];
  return reversals.some((lastMs, index) => {
    const until = reversals.slice(0, index + 1);
    const ofDay = until.filter((ms) => lastMs - ms < DAY_MS);
    const days = new Set(until.filter((ms) => lastMs - ms < 7 * DAY_MS).map((ms) => Math.floor(ms / DAY_MS)));
    return ofDay.length >= MOST_IN_A_DAY || days.size >= MOST_DAYS_OF_SEVEN;
  });
}

/** A record in which nothing is stopped any more. */
export function released(record: ComputeRecord): ComputeRecord {
  const { reversals: _forgotten, ...rest } = record;
  return rest;
}

/** The groups of fields that are left alone because of a fight. */
export function stoppedGroups(record: ComputeRecord): FieldGroup[] {
  return (['size', 'suspend_timeout'] as const).filter((group) => isFightStopped(record, group));
}

/**
 * A record in which no manual change blocks anything any more: no fight is stopped, no change respected. The marks stay, as seen long ago,
 * or the same values would at once be noticed again. The same record if there was nothing.
 */
export function releaseRecord(record: ComputeRecord): ComputeRecord {
  const marks = Object.entries(record.manual ?? {}).filter(([, mark]) => mark.seenAtMs > 0);
  const stopped = stoppedGroups(record).length > 0;
  if (marks.length === 0 && !stopped) return record;
  const free = stopped ? released(record) : record;
  const asOld = marks.map(([group, mark]): [string, ManualMark] => [group, { ...mark, seenAtMs: 0 }]);
  return marks.length === 0 ? free : { ...free, manual: { ...record.manual, ...Object.fromEntries(asOld) } };
}
