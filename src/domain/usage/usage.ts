/** The usage of a unit, by hours or days. A unit is a branch or a project, as measured by the control API. Missing data are unknown, not zero. */
import { COMPUTE_SIZES_CU } from '../compute/compute-units.ts';
import { isoInstant } from '../time/units.ts';

/** A branch; or a project, with `branchId` null. */
export interface UsageUnit {
  projectId: string;
  /** The id of a branch; `deleted` for the sum of the project's deleted branches. */
  branchId: string | null;
}

export interface UsageBucket {
  /** Milliseconds since the epoch. */
  startMs: number;
  /** The length of the bucket: 3600 for an hour, 86,400 for a day. */
  seconds: number;
  /** CU-seconds, at least 0; null if unknown. */
  cuSeconds: number | null;
}

/** The buckets of one unit, oldest first, without overlaps. Usage in gaps is unknown. */
export interface UsageSeries extends UsageUnit {
  buckets: readonly UsageBucket[];
}

/** The name of a unit: `PROJECT` or `PROJECT/BRANCH`. */
export function unitName({ projectId, branchId }: UsageUnit): string {
  return branchId === null ? projectId : `${projectId}/${branchId}`;
}

/** The problem of a bucket that follows the bucket `before`; undefined if it is valid. `computes` is the number of computes in the unit, if known. */
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
  const maxCuSeconds = LARGEST_CU * seconds * Math.max(1, computes);
  if (cuSeconds <= maxCuSeconds) return undefined;
  return `${cuSeconds} CU-seconds are more than ${computes} computes of ${LARGEST_CU} CU can use in ${seconds} s; correct it`;
}

const LARGEST_CU = Math.max(...COMPUTE_SIZES_CU);
