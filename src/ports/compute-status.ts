/** The status of a compute. `orphaned`: ebb has changed it, and no policy selects it any more. */
export const COMPUTE_STATUSES = [
  'enforced',
  'observed',
  'unmatched',
  'held',
  'frozen',
  'orphaned',
  'degraded',
] as const;
export type ComputeStatus = (typeof COMPUTE_STATUSES)[number];
