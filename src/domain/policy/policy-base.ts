import type { ManualChanges, PartialDisruption } from './disruption.ts';
import type { Selector } from './selector.ts';

/** What every policy has, whatever its kind. */
export interface PolicyBase {
  /** One of `PolicyKind`; what depends on it is asked of the registry of kinds. */
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
  /** When a change may disturb; what it leaves out is as the settings say. */
  disruption?: PartialDisruption;
  manualChanges?: ManualChanges;
  /** Receivers that are told of its changes, besides those that take its owner. */
  notify?: readonly string[];
  /** How long before a change that disconnects clients people are told, in milliseconds; absent: as the settings say. */
  notifyBeforeMs?: number;
}
