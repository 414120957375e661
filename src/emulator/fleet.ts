/** Clients of a compute, by class: docs/emulator.md. Sizes are in CU. */
export type Load =
  | { class: 'office_users' | 'night_batch' | 'bursty_api'; cu: number; utcOffsetHours: number }
  | { class: 'cron_ping' | 'queue_poller'; cu: number; everySeconds: number }
  | { class: 'idle_in_transaction'; hours: number; utcOffsetHours: number }
  | { class: 'replication'; cu: number }
  /** Oldest first. */
  | { class: 'trace'; points: readonly { atMs: number; cu: number }[] };

/** The initial state of the world. Sizes are in CU, instants in milliseconds since the epoch. */
export interface FleetCompute {
  id: string;
  branchId: string;
  branch?: { name?: string; default?: boolean; protected?: boolean };
  type: 'read_write' | 'read_only';
  minCu: number;
  maxCu: number;
  suspendTimeoutSeconds: number;
  state: 'init' | 'active' | 'idle';
  /** Absent: a year before the start. */
  createdAtMs?: number;
  lastActiveAtMs?: number;
  /** Clients that are connected at the start of an active compute. */
  connections: number;
  /** Clients that come and go by themselves; absent: none. */
  load?: readonly Load[];
  /** Its list of operations at the start. */
  history?: readonly PastOperation[];
}

export interface FleetProject {
  id: string;
  name: string;
  /** Its projects belong to the organization `org-ACCOUNT`. */
  account?: string;
  regionId: string;
  pgVersion: number;
  /** Absent: scale, which forbids nothing. */
  plan?: 'free' | 'launch' | 'scale';
  computes: FleetCompute[];
}

/** The behaviour of the consumption routes: docs/emulator.md. */
export interface Consumption {
  /** `projects`: without the route for branches; `none`: both are not found. */
  routes: 'both' | 'projects' | 'none';
  /** Metrics that are zero, and hours without any, are left out or sent. */
  zeros: 'omitted' | 'sent';
  /** The delay until usage shows, in minutes; it appears in steps of a quarter of an hour. */
  delayMinutes: number;
  /** Nothing new shows from one instant to another; then all of it does. */
  stalls: readonly { fromMs: number; toMs: number }[];
  /** The share of hours of a unit that show a tenth too little for 24 h. */
  corrections: number;
  /** Deleted branches and projects stay listed or not. */
  deleted: 'listed' | 'hidden';
  /** Branches have no usage before; absent: they always had. */
  branchesFromMs?: number;
  /** The running hour, day or month: left out, or sent as far as it is. */
  openBucket: 'omitted' | 'sent';
  /** The share of a project's usage that belongs to none of its branches. */
  unattributed: number;
}

export const USUAL_CONSUMPTION: Consumption = {
  routes: 'both',
  zeros: 'omitted',
  delayMinutes: 45,
  stalls: [],
  corrections: 0,
  deleted: 'listed',
  openBucket: 'omitted',
  unattributed: 0,
};

/** An operation from before the start, without any usage. */
export interface PastOperation {
  action: string;
  status: string;
  createdAtMs: number;
  durationMs: number;
}

export interface Fleet {
  projects: FleetProject[];
  /** The world's past before the start, with its loads; absent: it begins at the start. */
  historyMs?: number;
  consumption?: Partial<Consumption>;
}
