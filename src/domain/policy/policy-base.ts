import type { ManualChanges, PartialDisruption } from './disruption.ts';
import type { Selector } from './selector.ts';

/** The fields of every policy, whatever its kind. */
export interface PolicyBase {
  /** One of `PolicyKind`; the registry of kinds answers questions about it. */
  kind: string;
  name: string;
  /** The file it was read from, as it was named. */
  file: string;
  owner?: string;
  /** The team whose file it is from; absent for files of the platform. */
  team?: string;
  mode: 'enforce' | 'observe';
  select: Selector;
  priority: number;
  /** When a change may disturb; missing fields are as in the settings. */
  disruption?: PartialDisruption;
  manualChanges?: ManualChanges;
  /** Receivers of its changes, besides those that take its owner. */
  notify?: readonly string[];
  /** Lead of notifications about changes that disconnect clients, in milliseconds; absent: as in the settings. */
  notifyBeforeMs?: number;
}
