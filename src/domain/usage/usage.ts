/**
 * The usage of a unit, by hours or days. A unit is what the control API measures: a branch, or a project. Missing data are unknown, never
 * zero.
 */
import { COMPUTE_SIZES_CU } from '../compute/compute-units.ts';
import { isoInstant } from '../time/units.ts';

/** A branch; or a project, with `branchId` null. */
export interface UsageUnit {
  projectId: string;
  /**
   * An id of a branch; `unattributed` for the project's usage beyond the sum of its branches, `deleted` for that of its deleted branches.
   */
  branchId: string | null;
}

export interface UsageBucket {
  /** Milliseconds since the epoch. */
  startMs: number;
  /** Its length: 3600 for an hour, 86,400 for a day. */
  seconds: number;
  /** CU-seconds, at least 0; null is unknown. */
  cuSeconds: number | null;
}

/** One unit's buckets, oldest first, without overlaps. A gap between two is unknown. */
export interface UsageSeries extends UsageUnit {
  buckets: readonly UsageBucket[];
}

/** The written form of a unit: `PROJECT` or `PROJECT/BRANCH`. */
export function unitName({ projectId, branchId }: UsageUnit): string {
  return branchId === null ? projectId : `${projectId}/${branchId}`;
}

/** Says why a bucket can't follow another one of its unit; undefined if it can. `computes`: their number in the unit, if known. */
export function bucketProblem(
  bucket: UsageBucket,
  before: UsageBucket | undefined,
  computes: number | undefined,
): string | undefined {
  const { startMs, seconds, cuSeconds } = bucket;
  if (before?.startMs === startMs) return `a second bucket of this unit at ${isoInstant(startMs)}; leave one out`;
  if (before !== undefined && before.startMs > startMs) {
    return `it begins before the line above of this unit (${isoInstant(before.startMs)}); sort by start`;
  }
  if (before !== undefined && before.startMs + before.seconds * 1000 > startMs) {
    return `it overlaps the bucket of this unit at ${isoInstant(before.startMs)}; write hours or days, not both`;
  }
  if (cuSeconds === null || computes === undefined) return undefined;
  const most = LARGEST_CU * seconds * Math.max(1, computes);
  if (cuSeconds <= most) return undefined;
  return `${cuSeconds} CU-seconds are more than ${computes} computes of ${LARGEST_CU} CU can use in ${seconds} s; correct it`;
}

const LARGEST_CU = Math.max(...COMPUTE_SIZES_CU);
