import { type Compute, FIELD_GROUPS, fieldsOf } from '../compute/compute.ts';
import type { ComputeRecord } from './compute-record.ts';

/**
 * Returns the compute with the changes that ebb has applied after its reading began at `readAtMs`, milliseconds since the epoch. A field that a
 * person has changed stays as it was read.
 */
export function withApplied(compute: Compute, record: ComputeRecord | undefined, readAtMs: number): Compute {
  if (!record || record.intent || (record.lastSentAtMs ?? 0) <= readAtMs) return compute;
  const applied = FIELD_GROUPS.filter((group) => record.manual?.[group] === undefined).map((group) =>
    fieldsOf(group, record.lastApplied),
  );
  return Object.assign({}, compute, ...applied);
}
