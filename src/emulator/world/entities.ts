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
/** How a fault makes an operation end; with `hang` it never ends. */
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

/** The settings that a PATCH changes, and that a failed apply_config restores. */
export interface ComputeSettings {
  branchId: string;
  minCu: number;
  maxCu: number;
  /** The value that was written: 0 is the default of 300 s, −1 is never. */
  suspendTimeoutSeconds: number;
  disabled: boolean;
  poolerEnabled: boolean;
  name: string | undefined;
  pgSettings: Readonly<Record<string, string>>;
}

/** Clients that connected together. */
export interface ConnectionGroup {
  connections: number;
  /** How long they stay connected; absent: until they are disconnected or dropped. */
  forMs?: number | undefined;
  /** When their connections end; set once they are connected. */
  endsAtMs?: number;
  /** True if they reconnect after they were dropped. */
  reconnects: boolean;
  /** False for connected clients that do nothing: they don't keep the compute awake. */
  isBusy: boolean;
  /** If set, changes of these clients are reported as `clients` events. */
  id?: string | undefined;
  /** The size that the clients need, in CU; absent: the minimum is enough. */
  cu?: number | undefined;
  /** The class of clients, to which the awake time is attributed. */
  cause?: string;
}

/** The clients of one load; `group` is set while they are connected or waiting. */
export interface ComputeLoad {
  load: Load;
  seed: number;
  group: ConnectionGroup | undefined;
}

/** Usage in each quarter of an hour, by its number since the epoch. */
export type QuarterLedger = Map<number, { readonly cuMs: number; readonly activeMs: number }>;

/** The usage of a project and its branches. It is kept when they are deleted. */
export interface ProjectLedger {
  projectId: string;
  orgId: string | undefined;
  createdAtMs: number;
  deletedAtMs: number | undefined;
  /** Oldest first. */
  plans: { fromMs: number; plan: Plan }[];
  branches: Map<string, { quarters: QuarterLedger; deletedAtMs: number | undefined }>;
}

/** Sums since the start of the world. Sizes are summed over the time in state `active` only. */
export interface Usage {
  addedUntilMs: number;
  activeMs: number;
  /** The usage at the sizes that autoscaling chose, which is billed. */
  cuMs: number;
  /** The usage if the size had always been the minimum (`Low`) or the maximum (`High`). */
  cuMsLow: number;
  cuMsHigh: number;
  connectionsDropped: number;
  restarts: number;
  /** Awake time by cause: classes of clients joined by `+` (`clients` without a class), `timeout`, or `never_suspends`. */
  causes: Map<string, number>;
}

export interface Operation {
  id: string;
  projectId: string;
  branchId: string;
  /** The compute in whose queue the operation was; absent for an operation of the project alone. */
  computeId?: string;
  action: OperationAction;
  status: OperationStatus;
  failuresCount: number;
  error?: string;
  /** Microseconds since the epoch, unique within the world: the order of pages, and their cursor. */
  createdAtMicros: number;
  updatedAtMs: number;
  endedAtMs?: number;
  /** Settings that are restored if this operation fails. */
  rollback?: ComputeSettings;
  /** A suspend_compute that is the first half of a restart. */
  restarts?: true;
  /** The status with which a fault makes the operation end; absent: `finished`. */
  endsAs?: OperationStatus;
  /** True if a fault keeps the operation from ending. */
  hangs?: true;
}

/** Behaviours of the real service that are not certain. The first value is the emulator's default. */
export const BEHAVIOURS = {
  /** `restarts`: a new timeout alone restarts an awake compute. */
  timeoutChange: ['stays', 'restarts'],
  /** `late`: `last_active` shows activity a minute later, not at once. */
  lastActive: ['current', 'late'],
  /** `stays`: a change does not move `updated_at` of its compute. */
  computeUpdatedAt: ['moves', 'stays'],
  /** The connections that a restart ends. */
  restartDrops: ['all', 'busy', 'none'],
  /** `told`: answers carry the rate limit. */
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

/** Optional values are `undefined`, never absent: deleting a property would make the object slow. */
export interface Compute extends ComputeSettings {
  id: string;
  projectId: string;
  type: ComputeType;
  state: ComputeState;
  pendingState: ComputeState | undefined;
  createdAtMs: number;
  updatedAtMs: number;
  lastActiveAtMs: number | undefined;
  /** Earlier values of `lastActiveAtMs`, oldest first, for `lastActive: late`. */
  activity: number[];
  startedAtMs: number | undefined;
  suspendedAtMs: number | undefined;
  /** Unfinished operations, in order: the first runs, the others wait for it. */
  queue: Operation[];
  connected: ConnectionGroup[];
  waiting: ConnectionGroup[];
  /** The earliest instant at which the index has a check for suspension of the compute. */
  suspensionCheckAtMs: number | undefined;
  usage: Usage;
  /** The ledger of the compute's branch. */
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
  parentId?: string | undefined;
  createdAtMs: number;
  updatedAtMs: number;
}

export interface Project {
  id: string;
  name: string;
  /** The organization that owns the project; absent: the project is personal. */
  orgId?: string | undefined;
  regionId: string;
  pgVersion: number;
  plan: Plan;
  createdAtMs: number;
  updatedAtMs: number;
  /** The instant of a change that `updated_at` shows with a delay. */
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

/** Makes operations fail, or never end. */
export interface OperationFault {
  id: string;
  action?: OperationAction | undefined;
  computeId?: string | undefined;
  projectId?: string | undefined;
  outcome: FaultOutcome;
  /** The number of operations that the fault will still hit; undefined: all. */
  remaining?: number | undefined;
  /** The share of operations that the fault hits, 0..1. */
  share: number;
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
      computeId: string | undefined;
      operationId: string;
      action: OperationAction;
      status: OperationStatus;
    }
  | { type: 'state'; atMs: number; computeId: string; state: ComputeState }
  | { type: 'clients'; atMs: number; computeId: string; groupId: string; change: 'connected' | 'dropped' | 'sent_away' }
  | { type: 'dropped'; atMs: number; computeId: string; connections: number }
  | { type: 'deleted'; atMs: number; computeId: string };

/** The world is changed in place, and only by `execute`, so that equal seeds and commands give equal worlds. */
export interface WorldState {
  nowMs: number;
  random: RandomState;
  /** The seed of `random`; loads are drawn from it, so that they depend on the time alone. */
  seed: number;
  projects: Map<string, Project>;
  /** Ascending, for pages. */
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
  /** A fixed duration for every operation; undefined: from the distribution of each action. */
  operationTimeMs: number | undefined;
  /** True if real servers start and stop the computes: then `end_operation` reports the end of each start and stop. */
  hasRealServers: boolean;
  /** The mean interval between availability checks of a compute; undefined: never. */
  availabilityCheckMs: number | undefined;
  /** True if an availability check starts a sleeping compute. */
  checksWake: boolean;
  /** `wakes`: a new size starts a sleeping compute for a moment. */
  idlePatch: 'stays' | 'wakes';
  projectUpdatedAt: ProjectUpdatedAt;
  behaviours: Behaviours;
  /** Events of the command that is being executed. */
  events: WorldEvent[];
}
