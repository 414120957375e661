import type { ManualChanges, PartialDisruption } from './disruption.ts';
import type { Selector } from './selector.ts';

export interface PolicyBase {
  /** One of `PolicyKind` in kinds/kinds.ts. */
  kind: string;
  name: string;
  /** The path of the policy's file, as it was given. */
  file: string;
  owner?: string;
  /** The team that owns the file; absent for files of the platform. */
  team?: string;
  mode: 'enforce' | 'observe';
  select: Selector;
  priority: number;
  /** When a change may disturb clients; missing fields are as in the settings. */
  disruption?: PartialDisruption;
  manualChanges?: ManualChanges;
  /** Receivers of notifications about the policy's changes, in addition to those of its owner. */
  notify?: readonly string[];
  /** Lead of notifications about changes that disconnect clients, in milliseconds; absent: as in the settings. */
  notifyBeforeMs?: number;
}
