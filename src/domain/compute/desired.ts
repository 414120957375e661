import type { Size } from './compute.ts';

/** The two groups of fields that are decided, gated and reported together. */
export type FieldGroup = 'size' | 'suspend_timeout';

/** What a compute should have; null: no opinion, the field is left as it is. */
export interface Desired {
  size: Size | null;
  suspendTimeoutSeconds: number | null;
}
