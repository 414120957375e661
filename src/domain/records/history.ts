import type { ComputeSettings } from '../compute/compute.ts';

/** The kinds of entries: changes sent or held back, ends of operations, actions of people. */
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
  'notification',
  'refused',
] as const;
export type HistoryKind = (typeof HISTORY_KINDS)[number];

/** The kinds that the audit keeps: requests to the control API, and commands of people, also refused ones. */
export const AUDIT_KINDS: ReadonlySet<HistoryKind> = new Set([
  ...(['write', 'restart'] as const),
  ...(['hold', 'freeze', 'restore', 'approve', 'notification', 'refused'] as const),
]);

/** One event of a compute with its reasons, small enough to keep thousands of them. */
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
  /** A token named that person; otherwise the name is a command's or a request's own claim. */
  verified?: true;
  /** Of the request to the control API, or of the command: the same for all entries that one command leaves. */
  requestId?: string;
  /** The compute's owner at that time, where known. */
  owner?: string;
  /** Entries of the audit have one: no two have the same. */
  id?: string;
}

/** True for the entry of a write that took effect, by its last reason. */
export function tookEffect({ reasons }: Pick<HistoryEntry, 'reasons'>): boolean {
  return !/^not changed: |did not take effect$/.test(reasons.at(-1)?.message ?? '');
}
