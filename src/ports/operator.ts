/** The questions and commands of people and programs: to a running daemon over HTTP, or to its store where no daemon runs. */
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
  ReadingsDocument,
  RecordsDocument,
  ReleaseDocument,
  RestoreDocument,
  Staleness,
  StatusDocument,
  UnfreezeDocument,
  UsageDocument,
} from './documents.ts';
import type { NotificationIdsDocument, NotificationsDocument, RetryOrDropNotifications } from './notifications.ts';
import type { ComputeDetailDocument, FleetDocument, FleetFilter, FleetQuery } from './status-page.ts';
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
  /** 1..{@link MOST_PER_PAGE}. */
  limit: number;
}

export interface RecordsQuery extends PageQuery {
  /** Only of the project of this compute, in the form of a {@link HoldRequest}, or a project that has only one. */
  compute?: string | undefined;
}

/** Of which computes a status is; of all if nothing is given. Only a daemon knows owners and names. */
export interface StatusQuery extends Partial<FleetFilter> {
  select?: Selector<'request'> | undefined;
}

/** `limit` is 1..{@link MOST_PER_PAGE}. */
export interface DecisionsQuery {
  compute?: string | undefined;
  /** Of the computes that match, as far as they are among the newest thousand. Only a daemon knows them. */
  of?: FleetFilter;
  limit: number;
}

export interface UsageQuery extends PageQuery {
  /** `ACCOUNT/ORGANIZATION`. */
  account: string;
}

export const MOST_PER_PAGE = 1000;

/** Limits of texts of people. */
export const MOST_CHARACTERS = { owner: 80, reason: 300, query: 200 } as const;

/** Ids as the control API and ebb make them; anything else never enters a path, a key or a query. */
export const ID = /^[a-z0-9][a-z0-9-]{0,99}$/;

/** A request to a daemon waits this long for its answer, in milliseconds: a restore of a whole fleet takes its time. */
export const LONGEST_ANSWER_MS = 120_000;

export interface Page<T> {
  items: T[];
  /** The cursor of the next page; null on the last. */
  next: string | null;
}

export interface HoldRequest {
  /** `COMPUTE`, or `PROJECT/COMPUTE` for one that ebb does not know. */
  compute: string;
  owner: string;
  reason: string;
  /** Its duration, 1 s to {@link LONGEST_OVERRIDE_SECONDS}. */
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

/** Of a command that may change several computes. */
export interface Confirmable {
  /** Changes nothing: only reports what would change. */
  preview?: boolean | undefined;
  /** The number of computes that the caller expects to change; another number is refused. */
  confirm?: number | undefined;
}

/** More than one compute goes back only with the right number. */
export interface RestoreRequest extends Confirmable {
  computes: readonly string[] | 'all';
  owner: string;
  /** Without waiting for sleep. */
  now: boolean;
  /** The settings to restore, in place of the stored ones. */
  baselines?: readonly ComputeBaseline[] | undefined;
  /** Withdraws the requests that still wait, instead. */
  cancel?: boolean | undefined;
}

export interface ReleaseRequest extends Confirmable {
  /** Id of a hold, or of a compute; or `budget:NAME`. */
  target: string;
  owner: string;
  /** Of a compute: only what guards have taken back may be lowered again. */
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

/** The person behind a command, for the audit: by a token with a name, or by their own word. */
export interface Caller {
  /** Such as `ann`, or `ann@laptop` of a command line. */
  who: string;
  verified?: true;
  /** The teams to whose scope the token limits holds; absent where it does not. */
  teams?: readonly string[];
  /** The same of freezes. */
  freezes?: readonly string[];
  /** The same for all that one command does. */
  requestId: string;
}

/** A query of the audit. Instants are milliseconds since the epoch. */
export interface AuditListQuery extends PageQuery {
  compute?: string | undefined;
  /** Whose computes. */
  owner?: string | undefined;
  kind?: HistoryKind | undefined;
  /** By which policy. */
  policy?: string | undefined;
  /** By whom. */
  who?: string | undefined;
  /** The id of a request: all lines of one command. */
  request?: string | undefined;
  sinceMs: number;
  untilMs: number;
}

/** A request that a token does not allow. */
export interface Refusal {
  what: string;
  message: string;
  /** Computes or holds, or all. */
  targets: readonly string[] | 'all' | 'own';
}

/** Everything that daemon and store can both answer. Rejects while the store is away. Commands leave a line in the audit. */
export interface Operator {
  status(query?: StatusQuery): Promise<OperatorResult<StatusDocument>>;
  /** Sorted by project and compute. */
  computes(query: PageQuery): Promise<OperatorResult<Page<ComputeDocument>>>;
  /** Newest first. */
  decisions(query: DecisionsQuery): Promise<OperatorResult<DecisionDocument[]>>;
  /** Requests to the control API, and commands of people; newest first. */
  audit(query: AuditListQuery): Promise<OperatorResult<Page<DecisionDocument>>>;
  holds(query: PageQuery): Promise<OperatorResult<Page<HoldDocument>>>;
  hold(request: HoldRequest, caller?: Caller): Promise<OperatorResult<HoldDocument>>;
  /** Deletes a hold; or, of a compute, every hold, stopped fights and respected manual changes. */
  release(request: ReleaseRequest, caller?: Caller): Promise<OperatorResult<ReleaseDocument>>;
  freezes(query: PageQuery): Promise<OperatorResult<Page<FreezeDocument>>>;
  freeze(request: FreezeRequest, caller?: Caller): Promise<OperatorResult<FreezeDocument>>;
  /** One by its id, or all. Returns the ids of the ended ones. */
  unfreeze(request: UnfreezeRequest, caller?: Caller): Promise<OperatorResult<UnfreezeDocument>>;
  approve(request: ApproveRequest, caller?: Caller): Promise<OperatorResult<ApproveDocument>>;
  restore(request: RestoreRequest, caller?: Caller): Promise<OperatorResult<RestoreDocument>>;
  /** Stored records, for a plan while a daemon has the store. */
  records(query: RecordsQuery): Promise<OperatorResult<Page<RecordsDocument>>>;
  /** Stored readings of the fleet, in the order in which they must be read; some collections a page. */
  readings(query: PageQuery): Promise<OperatorResult<Page<ReadingsDocument>>>;
  /** The usage that is kept of an organization. */
  usage(query: UsageQuery): Promise<OperatorResult<Page<UsageDocument>>>;
  /** What was used by day and project; null while nothing was measured. */
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

/** Questions that only a running daemon can answer. */
export interface DaemonOperator extends Operator {
  /** Undefined while the store answers. */
  staleness(): Staleness | undefined;
  readiness(): Promise<Readiness>;
  /** The whole of /metrics in the Prometheus text format. */
  metricsText(): Promise<{ contentType: string; body: string }>;
  /** The teams in whose scope a compute is, or the compute of a hold; or whose files a staged set is of; or which has set a freeze. None where that is not known. */
  teamsOf(kind: 'compute' | 'set' | 'freeze', target: string): Promise<string[]>;
  /** Leaves a line in the audit. Never rejects. */
  refused(refusal: Refusal, caller: Caller): Promise<void>;
  /** The plan of the fleet, in the form of `ebb plan --json`. */
  plan(): Promise<object>;
  /** A page of the fleet, the most urgent first. */
  fleet(query: FleetQuery): Promise<FleetDocument>;
  /** A compute that it knows; at little cost. */
  findCompute(computeId: string): Promise<OperatorResult<ComputeName>>;
  /** An active hold. */
  findHold(id: string): Promise<OperatorResult<HoldDocument>>;
  /** Everything about one compute. */
  compute(computeId: string): Promise<OperatorResult<ComputeDetailDocument>>;
}
