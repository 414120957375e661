import type { OperationRow } from '../domain/awake/operation-log.ts';
import type { Compute, ComputeSettings, ComputeState } from '../domain/compute/compute.ts';
import type { AccountPlan } from '../domain/compute/cost.ts';
import type { Priority } from '../domain/rate-budget/grant.ts';
import type { Grant, WaitingRequests } from './rate-budget.ts';

/** A project as the list of projects shows it. */
export interface Project {
  account: string;
  projectId: string;
  /** The id where the name could not be read. */
  name: string;
  nameUnknown?: true;
  regionId: string;
  updatedAtMs: number;
  computeLastActiveAtMs?: number;
  /** The major version of Postgres. */
  pgVersion?: number;
  /** Absent for a personal project, and where unknown. */
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

/** `succeeded`: finished, skipped. `failed`: failed, error, cancelled. `pending`: any other status, unknown ones included. */
export type OperationOutcome = 'pending' | 'succeeded' | 'failed';

export interface Operation extends OperationRow {
  operationId: string;
  outcome: OperationOutcome;
  failuresCount: number;
  updatedAtMs: number;
  error?: string;
}

/** One page of operations, newest first. */
export interface OperationsPage<Op extends OperationRow = OperationRow> {
  operations: readonly Op[];
  /** Only of stored operations. `isCut`: the API had older ones that were not read. */
  stored?: { readAtMs: number; isCut: boolean };
  /** The cursor of the next page; undefined on the last. */
  cursor: string | undefined;
}

export type UsageGranularity = 'hourly' | 'daily' | 'monthly';

/** Buckets from `fromMs` to `toMs` (exclusive), both of which are starts of buckets. */
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

/** All pages of an answer. Metrics that are zero, and buckets without any, are missing. */
export interface UsagePages {
  /** Values by start of the bucket and name of the metric. `branchId` is null for a project. */
  units: { projectId: string; branchId: string | null; buckets: Map<number, Record<string, number>> }[];
  /** Plans by the instant since which they apply: the start of a billing month, or of a part of one. */
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
  'timeout', // 408, no answer within the deadline
  'malformed', // an answer that is not what the specification says
] as const;
export type ControlApiErrorCode = (typeof CONTROL_API_ERROR_CODES)[number];

/** True if the service gave no answer or could not work, as opposed to an answer that refuses the request. */
export function isUnavailable({ code }: Pick<ControlApiError, 'code'>): boolean {
  return code === 'unavailable' || code === 'timeout';
}

export interface ControlApiError {
  code: ControlApiErrorCode;
  /** Method and path template, e.g. `PATCH /projects/{project_id}/endpoints/{endpoint_id}`. */
  route: string;
  /** HTTP status; absent when no answer came. */
  status?: number;
  /** The service's message, or the local error. Never contains a key. */
  message: string;
  account?: string;
  /** Set where several projects are read, so that messages can name the project. */
  projectId?: string;
  requestId?: string;
  /** When the first of its requests that failed without an answer in between was sent, in monotonic time; absent where nothing was asked. */
  beganAtMonotonicMs?: number;
  retryAfterMs?: number;
  /** No connection could be made: the address is wrong, or nothing listens there. */
  noConnection?: true;
  /** Nothing was sent, since the account's readings of other projects get no answer either. */
  othersFail?: true;
  /** The write may have taken effect: read before sending it again. */
  outcomeUnknown?: true;
}

export type ApiResult<T> = { ok: true; value: T } | { ok: false; error: ControlApiError };

/** A permit of the rate budget to send one request of a kind. */
export interface Permit {
  isUsed(): boolean;
  /** Undefined if it was used before. */
  take(): Pick<Grant, 'waitedMs' | 'waitUntilDue'> | undefined;
  /** Returns the permit unused, for others. Does nothing once it was used. */
  giveBack(): void;
}

/** The calls whose budget can be acquired ahead. */
export type PermittedCall = 'listComputes' | 'updateCompute' | 'restartCompute';

export interface CallOptions {
  /**
   * The call's longest duration in real milliseconds, with retries and the wait for the rate budget; each page of a list
   * counts as a call. 30,000 by default.
   */
  deadlineMs?: number;
  signal?: AbortSignal;
  /** The priority in the queue for the account's rate budget. By default `lowering` for writes, otherwise `read`. */
  priority?: Priority;
  /** A random one by default. */
  requestId?: string;
  /** With it, the first request of the call doesn't wait for the rate budget. */
  permit?: Permit | undefined;
  /**
   * Retries while the answer is `locked` (423). False by default: once the operation that locks the project has ended, a write must be
   * decided again.
   */
  repeatLocked?: boolean;
}

export interface ListOptions extends CallOptions {
  /** Only projects that this account can see. */
  account?: string | undefined;
  /**
   * Called with each page of projects when it arrives, and with the monotonic time of its request, in milliseconds: under the rate limit, a list
   * of many pages takes long. Repeated and contradictory entries are still there.
   */
  onPage?: (projects: readonly Project[], askedAtMonotonicMs: number) => void;
  /** Called before each page but the first, which is requested once this has resolved. */
  beforeNextPage?: () => Promise<void>;
}

/** A listed compute that can't be parsed, such as one with an unknown state. */
export interface UnreadableCompute {
  /** Absent where not even the id can be read. */
  computeId?: string;
  /** The problem. */
  message: string;
}

export interface ComputeList {
  computes: Compute[];
  /** Never to be written to. */
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

export interface AccountStatus {
  account: string;
  /** `refused`: the API answered 401, so requests are only tried now and then. `missing`: no key could be read. `unknown`: not used yet. */
  key: 'valid' | 'refused' | 'missing' | 'unknown';
  /** One line for people if the key is refused or missing: the problem and the remedy. */
  message?: string;
  /**
   * The last time that the key was refused or missing. `endedAgoMs` (real milliseconds) is absent while it still is. Absent if that never
   * happened, and for an account with a key for each project, where one bad key does not concern other projects.
   */
  keyTrouble?: { state: 'refused' | 'missing'; endedAgoMs?: number };
  /** Real milliseconds for which requests have waited without any answer but 429. Absent while they are answered. */
  stalledMs?: number;
  /**
   * How far answers 429 have lowered the rate. `agoMs`: real milliseconds since the last 429. `normalInMs`: until the whole limit is used
   * again, unless another comes. Absent while the whole limit is used.
   */
  limit?: { level: number; agoMs: number; normalInMs: number };
  /** The requests of this process that wait for the limit. Absent while it has room. */
  waiting?: WaitingRequests;
}

/** Returns true while the account's key is refused or missing; never for an account with a key for each project. */
export function isKeyInTrouble({ keyTrouble }: AccountStatus): boolean {
  return keyTrouble !== undefined && keyTrouble.endedAgoMs === undefined;
}

/** The usage of a project in its current billing period; available on every plan. */
export interface ProjectPeriod {
  /** Absent if ebb doesn't know the plan. */
  plan?: AccountPlan;
  /** Milliseconds since the epoch. */
  fromMs: number;
  toMs: number;
  /** The usage so far. */
  cuHours: number;
  /** The hours awake so far, summed over the computes; absent if the API does not report them. */
  awakeHours?: number;
}

/** Reads operations, perhaps stored ones with fewer fields. */
export interface OperationsReader {
  operationsFrom(...args: Parameters<ControlApi['operationsFrom']>): Promise<ApiResult<OperationsPage>>;
}

/** A control API whose operations may be stored ones. */
export type FleetApi = Omit<ControlApi, 'operationsFrom'> & OperationsReader;

/** All requests that a daemon can make: no create, no delete, no start, no suspend, no key call. */
export interface ControlApi {
  /**
   * Pages of projects, in the API's order, one account after the other. Then an error for each account whose list is incomplete: projects
   * that are not in such a list may still exist.
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
  /** Pages of branches, without those that can't be parsed. A key may be refused here (`forbidden`, `not_found`) and still read computes. */
  listBranches(projectId: string, options?: CallOptions): AsyncIterable<ApiResult<Branch[]>>;
  /** Pages of operations, newest first. */
  listOperations(projectId: string, options?: CallOptions): AsyncIterable<ApiResult<Operation[]>>;
  /** A page of up to a thousand operations, newest first, from the cursor on. */
  operationsFrom(
    project: Pick<Project, 'account' | 'projectId'>,
    cursor: string | undefined,
    options?: CallOptions,
  ): Promise<ApiResult<OperationsPage<Operation>>>;
  /** Reads metered usage. Wakes nothing. The API has a separate rate limit for such requests, of which ebb uses a part. */
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
  /** In the order of the settings. Sends nothing. */
  accountStatus(): AccountStatus[];
  close(): Promise<void>;
}

/** Data of a fleet file that the control API has no field for. */
export interface ComputeFacts {
  /** The number of clients when the file was made. */
  connections?: number;
  /** The compute's settings before ebb's first change. */
  baseline?: ComputeSettings;
}

/** By compute id; a live control API has none. */
export type FleetFacts = ReadonlyMap<string, ComputeFacts>;
