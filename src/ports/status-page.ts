/** What the status page shows besides what commands can ask too; the HTTP API gives the same. Forms as in documents.ts. */
import type { ComputeDocument, DecisionDocument, HoldDocument, OperationDocument } from './documents.ts';

/** A stretch of time in which nothing changes that policies set. */
export interface SegmentDocument {
  from: string;
  /** Up to but not including. */
  to: string;
  min_cu: number;
  max_cu: number;
  suspend_timeout_seconds: number;
  /** Who decided it: policies, `hold by OWNER`; empty where nothing sets a value. */
  policies: string[];
}

/**
 * What is foreseen for seven days, without gaps; as `ebb forecast`. `not_yet`: not worked out yet, ask again. `too_often`: a policy
 * changes so often that it is not worked out.
 */
export type WeekDocument = { state: 'known'; segments: SegmentDocument[] } | { state: 'not_yet' | 'too_often' };

export interface FleetRowDocument extends ComputeDocument {
  branch_name: string | null;
  /** By `owners` of the settings, else by policies, as of costs; `unowned` if nobody is known. */
  owner: string;
  week: WeekDocument;
}

export interface FleetDocument {
  at: string;
  /** How many computes are known, and how many match what was looked for. */
  known: number;
  matched: number;
  /** From 1. */
  page: number;
  pages: number;
  /** Computes of which something changes within an hour by policy, and when the first does. */
  next_hour: { computes: number; first: string | null };
  /** Totals of what matched: of all of it, and by group where that was asked for, the largest first. */
  totals: FleetTotals;
  groups: (FleetTotals & { name: string })[];
  /** Owners of the whole fleet, to choose from. */
  owners: string[];
  /** In the order that was asked for. */
  computes: FleetRowDocument[];
}

export interface FleetTotals {
  computes: number;
  active: number;
  /** What the active ones may scale between now, in CU. */
  min_cu: number;
  max_cu: number;
}

export const FLEET_ORDERS = ['attention', 'compute', 'project', 'size', 'next'] as const;
export const FLEET_GROUPS = ['owner', 'project'] as const;

/** One step on the way to a decision, as `ebb explain --json` has it. */
export interface TraceStepDocument {
  group: string;
  code: string;
  policy?: string;
  mode?: string;
  hold?: string;
  before?: object | number | null;
  after?: object | number | null;
  connections?: object;
  /** The minimum that keeps the size from giving more connections. */
  minimum?: object;
  message: string;
}

export interface ComputeDetailDocument extends FleetRowDocument {
  at: string;
  region_id: string;
  disabled: boolean;
  /** What led to `desired`, step by step. */
  trace: TraceStepDocument[];
  holds: HoldDocument[];
  operations: OperationDocument[];
  /** Newest first. */
  decisions: DecisionDocument[];
}

export interface FleetQuery {
  /** Words that must all occur in ids, names, state, status or a policy's name; everything if it is empty. */
  q: string;
  /** Names, each as a whole; absent: any. */
  owner?: string | undefined;
  project?: string | undefined;
  policy?: string | undefined;
  status?: string | undefined;
  /** A gate that holds a change back. */
  reason?: string | undefined;
  sort?: (typeof FLEET_ORDERS)[number] | undefined;
  group?: (typeof FLEET_GROUPS)[number] | undefined;
  /** From 1; one beyond the end gives the last. */
  page: number;
}

/** How many computes a page of the fleet has. */
export const COMPUTES_PER_PAGE = 300;
