/** Clients of a compute, by class (see docs/emulator.md). Sizes are in CU. */
export type Load =
  | { class: 'office_users' | 'night_batch' | 'bursty_api'; cu: number; utcOffsetHours: number }
  | { class: 'cron_ping' | 'queue_poller'; cu: number; everySeconds: number }
  | { class: 'idle_in_transaction'; hours: number; utcOffsetHours: number }
  | { class: 'replication'; cu: number }
  /** Oldest first. */
  | { class: 'trace'; points: readonly { atMs: number; cu: number }[] };

/** A compute in its initial state. Sizes are in CU, instants in milliseconds since the epoch. */
export interface FleetCompute {
  id: string;
  branchId: string;
  branch?: { name?: string | undefined; default?: boolean | undefined; protected?: boolean | undefined } | undefined;
  type: 'read_write' | 'read_only';
  minCu: number;
  maxCu: number;
  suspendTimeoutSeconds: number;
  state: 'init' | 'active' | 'idle';
  /** Absent: the compute is as old as its project, which is at least a year old at the start. */
  createdAtMs?: number | undefined;
  lastActiveAtMs?: number | undefined;
  /** The number of clients that are connected at the start, if the compute is active. */
  connections: number;
  /** Simulated clients. */
  load?: readonly Load[] | undefined;
  pastOperations?: readonly PastOperation[] | undefined;
}

export interface FleetProject {
  id: string;
  name: string;
  /** The project belongs to the organization `org-ACCOUNT`; an account that begins with `org-` is the organization itself. Absent: personal. */
  account?: string | undefined;
  regionId: string;
  pgVersion: number;
  /** Absent: scale, the plan that forbids nothing. */
  plan?: 'free' | 'launch' | 'scale' | undefined;
  computes: FleetCompute[];
}

/** The behaviour of the consumption routes, from which clients read usage (see docs/emulator.md). */
export interface Consumption {
  /** `projects`: only the route for projects exists; `none`: neither that route nor the one for branches. */
  routes: 'both' | 'projects' | 'none';
  /** `omitted`: metrics of 0, and buckets without usage, are not sent. */
  zeros: 'omitted' | 'sent';
  /** The delay until usage is visible, in minutes. Usage becomes visible in quarters of an hour. */
  delayMinutes: number;
  /** Periods in which no new usage becomes visible. */
  stalls: readonly { fromMs: number; toMs: number }[];
  /** The share of hours whose usage is 10 % too low at first, and is corrected 24 h later. */
  corrections: number;
  /** `hidden`: deleted projects and branches are not listed. */
  deleted: 'listed' | 'hidden';
  /** The instant from which the usage of branches is shown; absent: always. */
  branchesFromMs?: number;
  /** `omitted`: the bucket (hour, day or month) that has not ended yet is not sent. */
  openBucket: 'omitted' | 'sent';
  /** The share of a project's usage that belongs to none of its branches. */
  unattributed: number;
}

export const DEFAULT_CONSUMPTION: Consumption = {
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
