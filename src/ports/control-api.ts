import type { Compute, ComputeSettings, ComputeState } from '../domain/compute/compute.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import type { Priority } from '../domain/rate-budget/grant.ts';
import type { Grant } from './rate-budget.ts';

/** A project as the list of projects shows it: identity, and the cheap signs that something in it changed. */
export interface Project {
  account: string;
  projectId: string;
  /** Its id, where the name could not be read. */
  name: string;
  nameUnknown?: true;
  regionId: string;
  updatedAtMs: number;
  computeLastActiveAtMs?: number;
  /** The major version of Postgres, where it is known. */
  pgVersion?: number;
  /** Absent for a personal project, and where it is not known. */
  organizationId?: string;
}

export interface Branch {
  branchId: string;
  name: string;
  isDefault: boolean;
  isProtected: boolean;
  /** Absent on the root branch of a project. */
  parentBranchId?: string;
}

/** Ended well: finished, skipped. Ended badly: failed, error, cancelled. Anything else, also unknown: still pending. */
export type OperationOutcome = 'pending' | 'succeeded' | 'failed';

export interface Operation {
  operationId: string;
  projectId: string;
  /** Absent when no compute is involved. */
  computeId?: string;
  /** As the API writes it; the list of actions grows, so any is accepted. */
  action: string;
  status: string;
  outcome: OperationOutcome;
  failuresCount: number;
  createdAtMs: number;
  updatedAtMs: number;
  /** The platform's own measure, milliseconds; for an ended operation how long it took. */
  totalDurationMs?: number;
  error?: string;
}

/** What is known of an operation of the past. */
export type PastOperation = Pick<
  Operation,
  'projectId' | 'computeId' | 'action' | 'status' | 'createdAtMs' | 'totalDurationMs'
>;

/** One page of operations, newest first. */
export interface OperationsPage<One extends PastOperation = PastOperation> {
  operations: readonly One[];
  /** Of stored operations: when they were read, milliseconds since the epoch, and whether the API had older ones. */
  stored?: { readAtMs: number; isCut: boolean };
  /** The cursor of the next page; undefined after the last operation that is kept. */
  cursor: string | undefined;
}

export type UsageGranularity = 'hourly' | 'daily' | 'monthly';

/** Buckets from `fromMs` on, which both begin with a bucket, up to and not including `toMs`. */
export interface UsageQuery {
  account: string;
  organization: string;
  /** All projects of the organization, or the branches of `projectIds`. */
  level: 'projects' | 'branches';
  projectIds?: readonly string[];
  granularity: UsageGranularity;
  fromMs: number;
  toMs: number;
  metrics: readonly string[];
}

/** A whole answer. Metrics that are zero, and buckets without any, are missing. */
export interface UsagePages {
  /** Values by start of the bucket and name of the metric. `branchId` is null for a project. */
  units: { projectId: string; branchId: string | null; buckets: Map<number, Record<string, number>> }[];
  /** The plan by the instant from which it counts: the start of a billing month, or of a part of one. */
  plans: Map<number, string>;
}

/** Stable codes of errors; docs/errors.md has the meaning and remedy of each. */
export const CONTROL_API_ERROR_CODES = [
  'unauthorised', // 401, or no key
  'forbidden', // 402, 403
  'not_found', // 404, 410
  'conflict', // 409
  'invalid', // 400, other 4xx
  'not_ready', // 422
  'precondition', // 412
  'locked', // 423
  'throttled', // 429, or no room in the rate budget
  'unavailable', // 5xx, no connection
  'timeout', // no answer within the deadline
  'malformed', // an answer that is not what the specification says
] as const;
export type ControlApiErrorCode = (typeof CONTROL_API_ERROR_CODES)[number];

export interface ControlApiError {
  code: ControlApiErrorCode;
  /** Method and path template, e.g. `PATCH /projects/{project_id}/endpoints/{endpoint_id}`. */
  route: string;
  /** HTTP status; absent when no answer came. */
  status?: number;
  /** The service's message, or the local error. Never contains a key. */
  message: string;
  /** The account whose key was used. */
  account?: string;
  requestId?: string;
  retryAfterMs?: number;
  /** On a write that may have taken effect although it failed here: read before sending it again. */
  outcomeUnknown?: true;
}

export type ApiResult<T> = { ok: true; value: T } | { ok: false; error: ControlApiError };

/** A permit of the rate budget to send one request of a kind. */
export interface Permit {
  isUsed(): boolean;
  /** Uses it; undefined if it was used before. */
  take(): Pick<Grant, 'waitedMs' | 'comesDue'> | undefined;
  /** Returns the permit unused, for others. Does nothing once it was used. */
  giveBack(): void;
}

/** The calls for whose budget one can wait ahead. */
export type PermittedCall = 'listComputes' | 'updateCompute' | 'restartCompute';

export interface CallOptions {
  /**
   * Real milliseconds that the call may take in all, repeats and waiting for the rate budget included; each page of a list
   * counts as a call. 30,000 by default.
   */
  deadlineMs?: number;
  signal?: AbortSignal;
  /** The priority while requests of an account wait for its rate budget. By default writes are `lowering`, anything else `read`. */
  priority?: Priority;
  /** Sent with the request, so that it can be found again; a random one by default. */
  requestId?: string;
  /** The first request of the call doesn't wait for the rate budget. */
  permit?: Permit | undefined;
  /**
   * Sends again while the answer is `locked` (423). False by default: who writes by a decision must decide again once the
   * operation that holds the project has ended.
   */
  repeatLocked?: boolean;
}

/** The scope of a list of projects. */
export interface ListOptions extends CallOptions {
  /** Those that this account can see; of all accounts if absent. */
  account?: string | undefined;
}

/** A compute that is listed in words that are not understood, such as a state that is not known. */
export interface UnreadableCompute {
  /** Absent where not even that can be read. */
  computeId?: string;
  /** The problem. */
  message: string;
}

export interface ComputeList {
  computes: Compute[];
  /** Nothing may be derived from these, or written to them. */
  unreadable: UnreadableCompute[];
}

/** The fields of a PATCH. Absent fields stay as they are. */
export type SettingsPatch = Partial<ComputeSettings>;

export interface ChangeAnswer {
  /** The compute's settings after the change, as answered. */
  settings: ComputeSettings;
  state: ComputeState;
  pendingState?: ComputeState;
  /** The compute's last change, by the clock of the control API. */
  updatedAtMs?: number;
  operations: Operation[];
}

/** The state of an account, as far as its key was tried. */
export interface AccountStatus {
  account: string;
  /** `refused`: answered 401, so its calls are not sent but for a probe now and then. `missing`: there is no key to send. */
  key: 'valid' | 'refused' | 'missing' | 'unknown';
  /** One line for people if the key is refused or missing: the problem and the remedy. */
  message?: string;
  /** Real milliseconds for which requests have waited, and none was answered but with 429. Absent while they are answered. */
  stalledMs?: number;
}

/**
 * All that the daemon can ask of a control API, and so all that can reach the wire from it: no create, no delete, no
 * start, no suspend, no key call.
 */
/** What a project has used in its current billing period, on every plan. */
export interface ProjectPeriod {
  /** Absent where it is none of those that are known. */
  plan?: AccountPlan;
  /** Milliseconds since the epoch. */
  fromMs: number;
  toMs: number;
  /** So far. */
  cuHours: number;
}

/** Reads operations, perhaps stored ones, of which less is known. */
export interface OperationsReader {
  operationsFrom(...asked: Parameters<ControlApi['operationsFrom']>): Promise<ApiResult<OperationsPage>>;
}

/** A control API whose operations may be stored ones. */
export type FleetApi = Omit<ControlApi, 'operationsFrom'> & OperationsReader;

export interface ControlApi {
  /**
   * Pages of projects, in the API's order, one account after the other. Errors come last, one for each account whose list is incomplete: a
   * project of it that was not seen may still exist. The pages of the others are complete.
   */
  listProjects(options?: ListOptions): AsyncIterable<ApiResult<Project[]>>;
  listComputes(
    project: Pick<Project, 'account' | 'projectId' | 'name' | 'nameUnknown'>,
    options?: CallOptions,
  ): Promise<ApiResult<ComputeList>>;
  projectPeriod(
    project: Pick<Project, 'account' | 'projectId'>,
    options?: CallOptions,
  ): Promise<ApiResult<ProjectPeriod>>;
  /** Pages of branches, without those that are not understood; a key may be refused here (`forbidden`, `not_found`) and still read computes. */
  listBranches(projectId: string, options?: CallOptions): AsyncIterable<ApiResult<Branch[]>>;
  /** Pages of operations, newest first. */
  listOperations(projectId: string, options?: CallOptions): AsyncIterable<ApiResult<Operation[]>>;
  /** One page of a thousand operations, newest first, from the cursor on; without one the newest. */
  operationsFrom(
    project: Pick<Project, 'account' | 'projectId'>,
    cursor: string | undefined,
    options?: CallOptions,
  ): Promise<ApiResult<OperationsPage<Operation>>>;
  /** Reads usage. Wakes nothing, and has a limit of its own, of which this takes a part. */
  usage(query: UsageQuery, options?: CallOptions): Promise<ApiResult<UsagePages>>;
  updateCompute(
    projectId: string,
    computeId: string,
    patch: SettingsPatch,
    options?: CallOptions,
  ): Promise<ApiResult<ChangeAnswer>>;
  restartCompute(
    projectId: string,
    computeId: string,
    options?: CallOptions,
  ): Promise<ApiResult<{ operations: Operation[] }>>;
  /** Waits until the rate budget has room for such a call. Rejects with the signal's reason when aborted. */
  permit(call: PermittedCall, options: { account: string; priority: Priority; signal: AbortSignal }): Promise<Permit>;
  /** Every account, in the order of the settings. Asks nothing. */
  accountStatus(): AccountStatus[];
  close(): Promise<void>;
}

/** Facts of a fleet file that the control API has no field for. */
export interface ComputeFacts {
  /** Clients that were connected when the file was made. */
  connections?: number;
  /** The compute's settings before ebb's first change. */
  baseline?: ComputeSettings;
}

/** Facts by id of the compute; a live control API has none. */
export type FleetFacts = ReadonlyMap<string, ComputeFacts>;
