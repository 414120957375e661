import type { Consumption, Load } from '../fleet.ts';
import type { Accounts, Plan } from './accounts.ts';
import type { DueIndex } from './due-index.ts';
import type { RandomState } from './random.ts';

export type ComputeType = 'read_write' | 'read_only';
export type ComputeState = 'init' | 'active' | 'idle';
export type OperationStatus =
  | 'scheduling'
  | 'running'
  | 'finished'
  | 'failed'
  | 'error'
  | 'cancelling'
  | 'cancelled'
  | 'skipped';
/** The ends of an operation by a fault; `hang` never ends it. */
export const FAULT_OUTCOMES = ['fail', 'error', 'cancel', 'skip', 'hang'] as const;
export type FaultOutcome = (typeof FAULT_OUTCOMES)[number];
export const OPERATION_ACTIONS = [
  'start_compute',
  'suspend_compute',
  'apply_config',
  'check_availability',
  'create_branch',
  'create_timeline',
] as const;
export type OperationAction = (typeof OPERATION_ACTIONS)[number];

/** The settings that a PATCH changes and a failed apply_config takes back. */
export interface ComputeSettings {
  branchId: string;
  minCu: number;
  maxCu: number;
  /** As it was written: 0 is the default of 300 s, −1 is never. */
  suspendTimeoutSeconds: number;
  disabled: boolean;
  poolerEnabled: boolean;
  name: string | undefined;
  pgSettings: Readonly<Record<string, string>>;
}

/** Clients that came together. They are counted in `connections` while they are on the compute. */
export interface ConnectionGroup {
  connections: number;
  /** The duration of their connection; absent: until they are disconnected or dropped. */
  forMs?: number;
  /** The end of their connection; set once they are connected. */
  endsAtMs?: number;
  /** True if they reconnect after they were dropped. */
  reconnects: boolean;
  /** False for clients that are connected and do nothing: they hold no compute awake. */
  isBusy: boolean;
  /** Set for clients whose events are needed outside. */
  id?: string;
  /** The size that they need, in CU; absent: none beyond the minimum. */
  cu?: number;
  /** The class of clients, to which the awake time is attributed. */
  cause?: string;
}

/** The clients of one load; they are together in a group while they are there. */
export interface ComputeLoad {
  load: Load;
  seed: number;
  group: ConnectionGroup | undefined;
}

/** Usage in each quarter of an hour, by its number since the epoch. */
export type QuarterLedger = Map<number, { readonly cuMs: number; readonly activeMs: number }>;

/** The usage of a project and its branches; it outlives them. */
export interface ProjectLedger {
  projectId: string;
  orgId: string | undefined;
  createdAtMs: number;
  deletedAtMs: number | undefined;
  /** Oldest first. */
  plans: { fromMs: number; plan: Plan }[];
  branches: Map<string, { quarters: QuarterLedger; deletedAtMs: number | undefined }>;
}

/** Sums since the start of the emulator. Sizes are summed over the time in state `active` only. */
export interface Usage {
  addedUntilMs: number;
  activeMs: number;
  /** By the sizes that autoscaling chose: the billed usage. */
  cuMs: number;
  cuMsLow: number;
  cuMsHigh: number;
  connectionsDropped: number;
  restarts: number;
  /** Awake time by cause: a class of clients, `clients`, `timeout`, `never_suspends`. */
  causes: Map<string, number>;
}

export interface Operation {
  id: string;
  projectId: string;
  branchId: string;
  /** The compute whose queue it is in. */
  computeId?: string;
  action: OperationAction;
  status: OperationStatus;
  failuresCount: number;
  error?: string;
  /** Microseconds since the epoch, unique within the world: the order of pages, and their cursor. */
  createdAtMicros: number;
  updatedAtMs: number;
  endedAtMs?: number;
  /** Settings that come back if this operation fails. */
  rollback?: ComputeSettings;
  /** A suspend_compute that is the first half of a restart. */
  restarts?: true;
  /** Its end by a fault; absent: `finished`. */
  endsAs?: OperationStatus;
  /** Waits for ever, by a fault. */
  hangs?: true;
}

/**
 * How the real service behaves where that is not known for certain. The first value is what the emulator does by itself.
 * `timeoutChange`: does a new timeout alone restart an awake compute? `lastActive`: is activity shown at once, or a minute later?
 * `computeUpdatedAt`: does a change move `updated_at` of its compute? `restartDrops`: whose connections does a restart end? `limits`: do
 * answers carry the rate limit?
 */
export const BEHAVIOURS = {
  timeoutChange: ['stays', 'restarts'],
  lastActive: ['current', 'late'],
  computeUpdatedAt: ['moves', 'stays'],
  restartDrops: ['all', 'busy', 'none'],
  limits: ['untold', 'told'],
} as const;
export type Behaviours = { [Name in keyof typeof BEHAVIOURS]: (typeof BEHAVIOURS)[Name][number] };
export const USUAL_BEHAVIOURS: Behaviours = {
  timeoutChange: 'stays',
  lastActive: 'current',
  computeUpdatedAt: 'moves',
  restartDrops: 'all',
  limits: 'untold',
};

/** When a project's own `updated_at` shows a change of one of its computes: at once, never, or after half a minute. */
export type ProjectUpdatedAt = 'moves' | 'stays' | 'late';

/** Fields that come and go are always there, if undefined: deleting one would make each object a slow one. */
export interface Compute extends ComputeSettings {
  id: string;
  projectId: string;
  type: ComputeType;
  state: ComputeState;
  pendingState: ComputeState | undefined;
  createdAtMs: number;
  updatedAtMs: number;
  lastActiveAtMs: number | undefined;
  /** Earlier values of it, oldest first, as far back as `last_active` may show one. */
  activity: number[];
  startedAtMs: number | undefined;
  suspendedAtMs: number | undefined;
  creationSource: string;
  /** Unfinished operations, in order: the first runs, the others wait for it. */
  queue: Operation[];
  connected: ConnectionGroup[];
  waiting: ConnectionGroup[];
  /** The earliest instant at which the index checks for a suspension. */
  suspensionCheckAtMs: number | undefined;
  usage: Usage;
  /** The ledger of its branch. */
  ledger: QuarterLedger;
  /** Awake spans, oldest first; `toMs` is absent for the open one. */
  awake: { fromMs: number; toMs?: number }[];
}

export interface Branch {
  id: string;
  projectId: string;
  name: string;
  default: boolean;
  protected: boolean;
  parentId?: string;
  createdAtMs: number;
  updatedAtMs: number;
}

export interface Project {
  id: string;
  name: string;
  /** The organization that owns it; absent: personal. */
  orgId?: string;
  regionId: string;
  pgVersion: number;
  plan: Plan;
  createdAtMs: number;
  updatedAtMs: number;
  /** A later change, which the project list shows half a minute after it. */
  lateUpdateMs?: number;
  branches: Map<string, Branch>;
  computes: Map<string, Compute>;
  /** Oldest first. */
  operations: Operation[];
  /** The number of unfinished operations: while there are any, changes are refused. */
  openOperations: number;
  /** The usage of deleted computes. */
  deletedUsage: { activeMs: number; cuMs: number; lastActiveAtMs: number | undefined };
}

/** Makes operations of an action fail, or never end. */
export interface OperationFault {
  id: string;
  action?: OperationAction;
  computeId?: string;
  projectId?: string;
  outcome: FaultOutcome;
  /** The number of operations that it will still hit; absent: all. */
  remaining?: number;
  /** The share of operations that it hits, 0..1. */
  share: number;
  /** The dice for the share. */
  random: RandomState;
}

export type DueItem =
  | { kind: 'operation'; operation: Operation }
  | { kind: 'suspension'; compute: Compute }
  | { kind: 'departure'; compute: Compute; group: ConnectionGroup }
  | { kind: 'availability'; compute: Compute }
  | { kind: 'demand'; compute: Compute; load: ComputeLoad };

export type WorldEvent =
  | {
      type: 'operation';
      atMs: number;
      projectId: string;
      computeId?: string;
      operationId: string;
      action: OperationAction;
      status: OperationStatus;
    }
  | { type: 'state'; atMs: number; computeId: string; state: ComputeState }
  | { type: 'clients'; atMs: number; computeId: string; groupId: string; change: 'connected' | 'dropped' | 'sent_away' }
  | { type: 'dropped'; atMs: number; computeId: string; connections: number }
  | { type: 'deleted'; atMs: number; computeId: string };

/** Everything there is. Changed in place, and only by `execute`, so that equal seeds and commands give equal worlds. */
export interface WorldState {
  nowMs: number;
  random: RandomState;
  /** The seed of `random`: events that depend on time alone are drawn from it. */
  seed: number;
  projects: Map<string, Project>;
  /** Ascending: the order of pages. */
  projectIds: string[];
  computes: Map<string, Compute>;
  ledgers: Map<string, ProjectLedger>;
  consumption: Consumption;
  accounts: Accounts;
  /** The plan of projects that are created. */
  plan: Plan;
  due: DueIndex<DueItem>;
  lastMicros: number;
  operationFaults: OperationFault[];
  /** A fixed duration for every operation; absent: from the distribution of each action. */
  operationTimeMs?: number;
  /** Computes are started and stopped from outside, which reports when that is done. */
  externalPower: boolean;
  /** The mean interval between checks of a compute by the platform; absent: never. */
  availabilityCheckMs?: number;
  /** Does such a check start a sleeping compute? */
  checksWake: boolean;
  /** Does a new size start a sleeping compute for a moment? */
  idlePatch: 'stays' | 'wakes';
  projectUpdatedAt: ProjectUpdatedAt;
  behaviours: Behaviours;
  /** Events of the command that is being executed. */
  events: WorldEvent[];
}
