/** Queries and commands of people and programs, to a running daemon over HTTP, or to its store where no daemon runs. */
import type { Size } from '../domain/compute/compute.ts';
import type { Selector } from '../domain/policy/selector.ts';
import type { HistoryKind } from '../domain/records/history.ts';
import type { CostDetailDocument } from './cost-documents.ts';
import type {
  ApproveDocument,
  ComputeDocument,
  ComputeName,
  DecisionDocument,
  FreezeDocument,
  HoldDocument,
  Readiness,
  ReleaseDocument,
  RestoreDocument,
  Staleness,
  StatusDocument,
  UnfreezeDocument,
} from './documents.ts';
import type { NotificationIdsDocument, NotificationsDocument, RetryOrDropNotifications } from './notifications.ts';
import type { ComputeDetailDocument, FleetDocument, FleetFilter, FleetQuery } from './status-page.ts';
import type { ReadingsDocument, RecordsDocument, UsageDocument } from './stored-documents.ts';
import type { WasteDocument, WasteQuery } from './waste.ts';

export interface OperatorError {
  code: 'invalid' | 'forbidden' | 'not_found' | 'full' | 'busy' | 'unconfirmed' | 'unavailable';
  /** One line: the problem and the remedy. */
  message: string;
}

export type OperatorResult<T> = { ok: true; value: T } | { ok: false; error: OperatorError };

export interface PageQuery {
  /** The `next` of the page before. */
  after?: string | undefined;
  /** 1..{@link MAX_PER_PAGE}. */
  limit: number;
}

export interface RecordsQuery extends PageQuery {
  /** Limits the answer to the project of this compute, which is written as in a {@link HoldRequest}, or is a project with only one compute. */
  compute?: string | undefined;
}

/** Selects computes, by default all. Only a daemon knows owners and names. */
export interface StatusQuery extends Partial<FleetFilter> {
  select?: Selector<'request'> | undefined;
}

/** `limit` is 1..{@link MAX_PER_PAGE}. */
export interface DecisionsQuery {
  compute?: string | undefined;
  /** Only decisions about matching computes, among the newest thousand. Only a daemon can answer such a query. */
  of?: FleetFilter;
  limit: number;
}

export interface UsageQuery extends PageQuery {
  /** `ACCOUNT/ORGANIZATION`. */
  account: string;
}

export const MAX_PER_PAGE = 1000;

/** Limits of texts in requests. */
export const MAX_CHARACTERS = { owner: 80, reason: 300, query: 200 } as const;

/** The message for a policy set that this daemon has not staged; another daemon may have. */
export const NOT_STAGED_HERE =
  'this daemon has staged no such policy set; if another has, try again in a minute (ebb status lists them)';

/** Ids of the control API and of ebb. Nothing else may enter a path, a key or a query. */
export const ID = /^[a-z0-9][a-z0-9-]{0,99}$/;

/** The longest wait for a daemon's answer, milliseconds: the restore of a large fleet takes long. */
export const LONGEST_ANSWER_MS = 120_000;

export interface Page<T> {
  items: T[];
  /** The cursor of the next page; null on the last. */
  next: string | null;
}

export interface HoldRequest {
  /** `COMPUTE`, or `PROJECT/COMPUTE` for one that ebb has not read. */
  compute: string;
  owner: string;
  reason: string;
  /** 1 to {@link LONGEST_OVERRIDE_SECONDS}. */
  forSeconds: number;
  size?: Size | undefined;
  /** Canonical seconds: −1 never, else 60..604800. */
  suspendTimeoutSeconds?: number | undefined;
  /** Excludes the other two. */
  freeze?: boolean | undefined;
}

export interface FreezeRequest {
  select: Selector<'request'> | 'all';
  owner: string;
  reason: string;
  forSeconds: number;
  allowRaise: boolean;
}

/** 90 days: a longer override belongs in a policy. */
export const LONGEST_OVERRIDE_SECONDS = 90 * 86_400;

/** A command that may change several computes. */
export interface Confirmable {
  /** Only reports what would change. */
  preview?: boolean | undefined;
  /** The number of computes that the caller expects to change; any other number is refused. */
  confirm?: number | undefined;
}

/** Needs `confirm` for more than one compute; `any` confirms any number. */
export interface RestoreRequest extends Pick<Confirmable, 'preview'> {
  confirm?: number | 'any' | undefined;
  computes: readonly string[] | 'all';
  owner: string;
  /** True if the restore does not wait until an awake compute sleeps. */
  now: boolean;
  /** The settings to restore instead of the stored ones. */
  baselines?: readonly ComputeBaseline[] | undefined;
  /** Withdraws waiting requests instead. */
  cancel?: boolean | undefined;
}

export interface ReleaseRequest extends Confirmable {
  /** Id of a hold, or of a compute; or `budget:NAME`. */
  target: string;
  owner: string;
  /** Only for a compute: allows again the lowerings that guards have taken back, and changes nothing else. */
  guard?: boolean | undefined;
}

export interface UnfreezeRequest extends Confirmable {
  id: string | 'all';
  owner: string;
}

export interface ApproveRequest extends Confirmable {
  hash: string;
  owner: string;
}

/** Earlier settings of a compute: sizes in CU, the timeout in seconds (−1: never). */
export interface ComputeBaseline {
  compute_id: string;
  min_cu: number;
  max_cu: number;
  suspend_timeout_seconds: number;
}

/** The person behind a command, for the audit. */
export interface Caller {
  /** Such as `ann`, or `ann@laptop` of a command line. */
  who: string;
  /** The name is that of a token, not the caller's claim. */
  verified?: true;
  /** The token limits holds to the scopes of these teams. */
  teams?: readonly string[];
  /** The token limits freezes to the scopes of these teams. */
  freezes?: readonly string[];
  /** Shared by all effects of one command. */
  requestId: string;
}

/** A query of the audit. Instants are milliseconds since the epoch. */
export interface AuditListQuery extends PageQuery {
  compute?: string | undefined;
  /** The owner of the compute. */
  owner?: string | undefined;
  kind?: HistoryKind | undefined;
  policy?: string | undefined;
  /** The person. */
  who?: string | undefined;
  /** The id of a request: all lines of one command. */
  request?: string | undefined;
  sinceMs: number;
  untilMs: number;
}

/** A request that a token does not allow. */
export interface Refusal {
  /** The request, such as `POST /api/v1/freezes`. */
  what: string;
  message: string;
  /** The targets that the request names, such as ids; `own`: those in the caller's scope. */
  targets: readonly string[] | 'all' | 'own';
}

/**
 * The queries and commands that a daemon and a store can both answer. While the store is unavailable, a daemon answers the queries whose
 * documents have `stale` from memory; other calls reject. Commands are audited.
 */
export interface Operator {
  status(query?: StatusQuery): Promise<OperatorResult<StatusDocument>>;
  /** Sorted by project and compute. */
  computes(query: PageQuery): Promise<OperatorResult<Page<ComputeDocument>>>;
  /** Newest first. */
  decisions(query: DecisionsQuery): Promise<OperatorResult<DecisionDocument[]>>;
  /** Writes to the control API, and commands of people; newest first. */
  audit(query: AuditListQuery): Promise<OperatorResult<Page<DecisionDocument>>>;
  holds(query: PageQuery): Promise<OperatorResult<Page<HoldDocument>>>;
  hold(request: HoldRequest, caller?: Caller): Promise<OperatorResult<HoldDocument>>;
  /** Deletes a hold; or the holds, stopped fights and respected manual changes of a compute; or ends the steps of a budget. */
  release(request: ReleaseRequest, caller?: Caller): Promise<OperatorResult<ReleaseDocument>>;
  freezes(query: PageQuery): Promise<OperatorResult<Page<FreezeDocument>>>;
  freeze(request: FreezeRequest, caller?: Caller): Promise<OperatorResult<FreezeDocument>>;
  unfreeze(request: UnfreezeRequest, caller?: Caller): Promise<OperatorResult<UnfreezeDocument>>;
  approve(request: ApproveRequest, caller?: Caller): Promise<OperatorResult<ApproveDocument>>;
  restore(request: RestoreRequest, caller?: Caller): Promise<OperatorResult<RestoreDocument>>;
  /** Stored records, for a plan while a daemon has locked the store. */
  records(query: RecordsQuery): Promise<OperatorResult<Page<RecordsDocument>>>;
  /** Stored readings of the fleet, in the order in which they must be read. */
  readings(query: PageQuery): Promise<OperatorResult<Page<ReadingsDocument>>>;
  /** The stored usage of an organization. */
  usage(query: UsageQuery): Promise<OperatorResult<Page<UsageDocument>>>;
  /** Null while nothing was measured. */
  costs(): Promise<OperatorResult<{ costs: CostDetailDocument | null }>>;
  /** The leader's findings. */
  waste(query: WasteQuery): Promise<OperatorResult<WasteDocument>>;
  /** Notifications that wait, and those that could not be sent. */
  notifications(): Promise<OperatorResult<NotificationsDocument>>;
  retryOrDropNotifications(
    request: RetryOrDropNotifications,
    caller?: Caller,
  ): Promise<OperatorResult<NotificationIdsDocument>>;
}

/** An operator with queries that only a running daemon can answer. */
export interface DaemonOperator extends Operator {
  /** Undefined while the store is available. */
  staleness(): Staleness | undefined;
  readiness(): Promise<Readiness>;
  /** /metrics in the Prometheus text format. */
  metricsText(): Promise<{ contentType: string; body: string }>;
  /**
   * The teams to which a target belongs; empty if there are none. Undefined if this daemon may not know the target yet: a compute while the
   * daemon has not listed all accounts and read all projects, or a set that is not staged here.
   * - `compute`: for the name of a compute, or the id of a hold, the teams whose scope has the compute; for `budget:NAME` the team of the
   *   budget.
   * - `set`: for a hash or its prefix, the team whose files are staged.
   * - `freeze`: for an id, the team that set the freeze.
   */
  teamsOf(kind: 'compute' | 'set' | 'freeze', target: string): Promise<string[] | undefined>;
  /** Writes a refusal into the audit. Never rejects. */
  refused(refusal: Refusal, caller: Caller): Promise<void>;
  /** The document that `ebb plan --json` prints. */
  plan(): Promise<object>;
  /** A page of the fleet, the most urgent first. */
  fleet(query: FleetQuery): Promise<FleetDocument>;
  /** Much cheaper than {@link DaemonOperator.compute}. */
  findCompute(computeId: string): Promise<OperatorResult<ComputeName>>;
  /** An active hold. */
  findHold(id: string): Promise<OperatorResult<HoldDocument>>;
  compute(computeId: string): Promise<OperatorResult<ComputeDetailDocument>>;
}
