import type { ComputeSettings } from '../compute/compute.ts';

export const HISTORY_KINDS = [
  'write',
  'restart',
  'held',
  'operation',
  'manual',
  'guard',
  'hold',
  'freeze',
  'restore',
  'approve',
  'notification',
  'refused',
] as const;
export type HistoryKind = (typeof HISTORY_KINDS)[number];

/** The kinds that the audit keeps: requests to the control API, findings of guards, and people's commands, also refused ones. */
export const AUDIT_KINDS: ReadonlySet<HistoryKind> = new Set<HistoryKind>([
  'write',
  'restart',
  'guard',
  'hold',
  'freeze',
  'restore',
  'approve',
  'notification',
  'refused',
]);

/** One event with its reasons. `projectId` and `computeId` are empty if it concerns the whole fleet. */
export interface HistoryEntry {
  /** Milliseconds since the epoch. */
  atMs: number;
  projectId: string;
  computeId: string;
  kind: HistoryKind;
  policy?: string;
  /** The hash of the policy set at that time. */
  setHash: string;
  /** The revision of the policy repository, as configured for the daemon. */
  revision?: string;
  from?: Partial<ComputeSettings>;
  to?: Partial<ComputeSettings>;
  /** Reasons as in {@link Reason}; other versions may have written other codes. */
  reasons: readonly { code: string; policy?: string; message: string }[];
  /** The person who caused the event, if any. */
  who?: string;
  /** True if a token proved the person; otherwise the command or request only claimed the name. */
  verified?: true;
  /** The id of the request to the control API, or of the command; equal for all entries of one command. */
  requestId?: string;
  /** The compute's owner at that time, if known. */
  owner?: string;
  /** A unique id; audit entries always have one. */
  id?: string;
}

/**
 * The message for a write that may have taken effect. `status` is that of the HTTP answer; undefined if none came. After a 500, too, the effect
 * is unknown.
 */
export function unknownOutcome(status: number | undefined): string {
  if (status === undefined) return 'no answer came, so it may have been changed';
  return 'the answer does not say whether it was changed';
}

/** Earlier versions wrote `not changed: unknown`, and `no answer came` also after an answer. */
const NO_EFFECT = /^not changed: |^no answer came, so |^the answer does not say whether |did not take effect$/;

/** False if the last reason says that the write had no effect, or that its effect is unknown. In the second case a later entry has the outcome. */
export function tookEffect({ reasons }: Pick<HistoryEntry, 'reasons'>): boolean {
  return !NO_EFFECT.test(reasons.at(-1)?.message ?? '');
}
