/** Clients of a compute, by class (see docs/emulator.md). Sizes are in CU. */
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
  branch?: { name?: string | undefined; default?: boolean | undefined; protected?: boolean | undefined } | undefined;
  type: 'read_write' | 'read_only';
  minCu: number;
  maxCu: number;
  suspendTimeoutSeconds: number;
  state: 'init' | 'active' | 'idle';
  /** Absent: a year before the start. */
  createdAtMs?: number | undefined;
  lastActiveAtMs?: number | undefined;
  /** Clients that are connected at the start of an active compute. */
  connections: number;
  /** Simulated clients. */
  load?: readonly Load[] | undefined;
  /** Operations from before the start. */
  history?: readonly PastOperation[] | undefined;
}

export interface FleetProject {
  id: string;
  name: string;
  /** The project belongs to the organization `org-ACCOUNT`. */
  account?: string | undefined;
  regionId: string;
  pgVersion: number;
  /** Absent: scale, which forbids nothing. */
  plan?: 'free' | 'launch' | 'scale' | undefined;
  computes: FleetCompute[];
}

/** The behaviour of the consumption routes (see docs/emulator.md). */
export interface Consumption {
  /** `projects`: the route for branches is not found; `none`: neither is. */
  routes: 'both' | 'projects' | 'none';
  /** Whether zero metrics, and hours with no other ones, are sent. */
  zeros: 'omitted' | 'sent';
  /** The delay until usage is visible, in minutes; it appears in steps of a quarter of an hour. */
  delayMinutes: number;
  /** Periods in which no new usage becomes visible. */
  stalls: readonly { fromMs: number; toMs: number }[];
  /** The share of hours of a project or branch that show 10 % too little for 24 h. */
  corrections: number;
  deleted: 'listed' | 'hidden';
  /** The start of branch usage; absent: it has always been measured. */
  branchesFromMs?: number;
  /** Whether the current hour, day or month is sent. */
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
  /** Duration of the history that is simulated before the start; absent: none. */
  historyMs?: number | undefined;
  consumption?: Partial<Consumption> | undefined;
}
