import type { ComputeSettings } from '../compute/compute.ts';

/** What an entry tells: a change that was sent or held back, how an operation ended, what a person did. */
export const HISTORY_KINDS = [
  'write',
  'restart',
  'held',
  'operation',
  'manual',
  'hold',
  'freeze',
  'restore',
  'approve',
] as const;
export type HistoryKind = (typeof HISTORY_KINDS)[number];

/** One line of what happened to a compute and why, small enough to keep thousands of them. */
export interface HistoryEntry {
  /** Milliseconds since the epoch. */
  atMs: number;
  projectId: string;
  computeId: string;
  kind: HistoryKind;
  policy?: string;
  /** The hash of the policy set that decided. */
  setHash: string;
  /** The revision of the policies' source that the daemon was told. */
  revision?: string;
  from?: Partial<ComputeSettings>;
  to?: Partial<ComputeSettings>;
  /** As {@link Reason}; the codes may be those of another version. */
  reasons: readonly { code: string; policy?: string; message: string }[];
  /** The person behind it, where there is one. */
  who?: string;
}
