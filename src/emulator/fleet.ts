/** What the world starts from. Sizes are in CU, instants in milliseconds since the epoch. */
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

export interface Fleet {
  projects: FleetProject[];
}
