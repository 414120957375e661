import type { Freeze } from '../domain/overrides/freezes.ts';
import type { Hold } from '../domain/overrides/holds.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { HistoryEntry } from '../domain/records/history.ts';

/** One line of a dump of a store. Entries of history and audit are oldest first. */
export type Dumped =
  | { kind: 'hold'; hold: Hold }
  | { kind: 'freeze'; freeze: Freeze }
  | { kind: 'record'; projectId: string; computeId: string; record: ComputeRecord }
  /** The usage of a unit of an organization, as the store keeps it, in base64. */
  | { kind: 'usage'; account: string; unit: string; bytes: string }
  | { kind: 'history'; entry: HistoryEntry };
