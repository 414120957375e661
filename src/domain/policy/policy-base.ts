import type { BranchRole } from '../compute/compute.ts';
import type { ManualChanges, PartialDisruption } from './disruption.ts';

/** Globs against ids or names; a `!` before a glob excludes. All keys that are given must match. */
export interface Selector {
  accounts?: readonly string[];
  projects?: readonly string[];
  /** Globs on projects outside of which nothing is selected: those of the team whose file has the policy. */
  scope?: readonly string[];
  branches?: readonly string[];
  computes?: readonly string[];
  regions?: readonly string[];
  types?: readonly ('read_write' | 'read_only')[];
  /** Roles of the branch, any of them. */
  branchRoles?: readonly BranchRole[];
  /** A stable part of the computes, by hash of their ids: in (0, 1]. */
  share?: number;
  /** Computes younger than this are left alone. */
  minAgeMs: number;
}

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
