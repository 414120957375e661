/**
 * What people and programs may ask and tell ebb: a running daemon over HTTP, or its store where no daemon runs. The documents
 * are shown as they are, by the HTTP API and by `--json`: instants are ISO 8601 in UTC, sizes CU, timeouts seconds (−1: never).
 */
import type { Size } from '../domain/compute/compute.ts';
import type { Reason } from '../domain/compute/reasons.ts';
import type { Selector } from '../domain/policy/policy-base.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { HistoryKind } from '../domain/records/history.ts';
import type { ComputeDetailDocument, FleetDocument, FleetQuery } from './status-page.ts';
import type { ConnectionSample } from './store.ts';

export interface Readiness {
  ready: boolean;
  /** One line for each part that must be there: queue, store, policies, control API. */
  checks: { name: string; ok: boolean; message: string }[];
}

/** What ebb does with a compute. `left`: ebb has changed it, and no policy selects it any more. */
export const COMPUTE_STATUSES = ['enforced', 'observed', 'unmatched', 'held', 'frozen', 'left', 'degraded'] as const;
export type ComputeStatus = (typeof COMPUTE_STATUSES)[number];

/** Null: no opinion, or not known. */
export interface SettingsDocument {
  min_cu: number | null;
  max_cu: number | null;
  suspend_timeout_seconds: number | null;
}

export interface ComputeDocument {
  project_id: string;
  project_name: string;
  compute_id: string;
  branch_id: string;
  type: string;
  status: ComputeStatus;
  current: SettingsDocument & { state: string };
  desired: SettingsDocument;
  baseline: SettingsDocument;
  verdict: 'act' | 'wait' | 'none';
  reasons: readonly Reason[];
  /** Until when the change waits, where that is known. */
  until: string | null;
  next_boundary: string | null;
}

export interface DecisionDocument {
  at: string;
  /** Empty where the entry concerns the whole fleet. */
  project_id: string;
  compute_id: string;
  kind: HistoryKind;
  policy: string | null;
  set_hash: string;
  revision: string | null;
  from: Partial<SettingsDocument> | null;
  to: Partial<SettingsDocument> | null;
  reasons: readonly { code: string; policy?: string; message: string }[];
  who: string | null;
}

interface OverrideDocument {
  id: string;
  owner: string;
  reason: string;
  created_at: string;
  /** Null: does not expire, as a stored freeze that this version can not read. */
  expires_at: string | null;
}

export interface HoldDocument extends OverrideDocument {
  project_id: string;
  compute_id: string;
  size: { min_cu: number; max_cu: number } | null;
  suspend_timeout_seconds: number | null;
  /** True: nothing is written to the compute. */
  freeze: boolean;
  /** What hard limits make of it, in one sentence; null where nothing, or where no daemon was asked. */
  limited: string | null;
}

export interface FreezeDocument extends OverrideDocument {
  select: Selector | 'all';
  allow_raise: boolean;
}

export interface ComputeName {
  project_id: string;
  compute_id: string;
}

/** An operation that ebb has started and whose end it awaits. */
export interface OperationDocument extends ComputeName {
  operation_id: string;
  action: string;
  started_at: string;
  policy: string | null;
}

export interface StatusDocument {
  at: string;
  /** `store`: no daemon was asked, so what only a daemon knows is null. */
  source: 'daemon' | 'store';
  mode: 'enforce' | 'observe' | null;
  set_hash: string | null;
  revision: string | null;
  policies: { name: string; kind: string; mode: string; owner: string | null }[] | null;
  /** How many by status; of a store only `known` and `degraded`. */
  computes: Record<string, number>;
  /** What waits, by the gate that holds it. */
  waiting: { reason: string; computes: number }[];
  holds: readonly HoldDocument[];
  freezes: readonly FreezeDocument[];
  /** The policy set that waits for `ebb approve`. */
  staged: { hash: string; message: string } | null;
  /** In flight, oldest first. */
  operations: OperationDocument[];
  /** What else keeps the newest policies from counting, such as files that are broken: one line each. */
  policy_problems: string[] | null;
  stopped_fights: (ComputeName & { fields: string[] })[];
  degraded: (ComputeName & { message: string })[];
  /** Computes that have fewer connections than they need, and no size that policies allow gives them; only a daemon knows. */
  unmet_headroom: (ComputeName & { message: string })[] | null;
  /** What people have changed by hand and policies want otherwise: from what to what, and until when it is respected; only a daemon knows. */
  manual_changes: (ComputeName & { message: string })[] | null;
  readiness: Readiness | null;
}

export interface ReleaseDocument {
  /** Ids of the holds that are gone. */
  holds: string[];
  /** Computes whose stopped fights or respected manual changes are forgotten. */
  computes: ComputeName[];
}

export interface RestoreDocument {
  computes: (ComputeName & {
    baseline: SettingsDocument;
    /**
     * `requested`: it goes back as far as no policy has an opinion; `policies_decide`: policies will change it again, it takes a
     * hold; `nothing_to_do`: ebb never changed it, or it is back already.
     */
    outcome: 'requested' | 'policies_decide' | 'nothing_to_do';
  })[];
}

export interface RecordsDocument {
  project_id: string;
  /** By id of the compute. */
  records: Record<string, ComputeRecord>;
  /** What was counted of their connections, oldest first; those without are left out, and all where no policy asks for it. */
  samples: Record<string, readonly ConnectionSample[]>;
}

export interface OperatorError {
  code: 'invalid' | 'not_found' | 'full' | 'busy' | 'unavailable';
  /** One line: what is wrong and what to do. */
  message: string;
}

export type OperatorResult<T> = { ok: true; value: T } | { ok: false; error: OperatorError };

export interface PageQuery {
  /** The `next` of the page before. */
  after?: string | undefined;
  /** 1..{@link MOST_PER_PAGE}. */
  limit: number;
}

export const MOST_PER_PAGE = 1000;

/** How long the texts of people may be. */
export const MOST_CHARACTERS = { owner: 80, reason: 300, query: 200 } as const;

/** Ids as the control API and ebb make them; anything else never enters a path, a key or a query. */
export const ID = /^[a-z0-9][a-z0-9-]{0,99}$/;

/** Whoever asks a daemon waits so long for its answer, in milliseconds: a restore of a whole fleet takes its time. */
export const LONGEST_ANSWER_MS = 120_000;

export interface Page<T> {
  items: T[];
  /** Where the next page begins; null on the last. */
  next: string | null;
}

export interface HoldRequest {
  /** `COMPUTE`, or `PROJECT/COMPUTE` for one that ebb has not met. */
  compute: string;
  owner: string;
  reason: string;
  /** How long it counts, 1 s to {@link LONGEST_OVERRIDE_SECONDS}. */
  forSeconds: number;
  size?: Size | undefined;
  /** Canonical seconds: −1 never, else 60..604800. */
  suspendTimeoutSeconds?: number | undefined;
  /** Excludes the other two. */
  freeze?: boolean | undefined;
}

export interface FreezeRequest {
  select: Selector | 'all';
  owner: string;
  reason: string;
  forSeconds: number;
  allowRaise: boolean;
}

/** 90 days: what is to hold for longer belongs in a policy. */
export const LONGEST_OVERRIDE_SECONDS = 90 * 86_400;

export interface RestoreRequest {
  computes: readonly string[] | 'all';
  owner: string;
  /** Without waiting for sleep. */
  now: boolean;
}

/** Everything that daemon and store can both answer. Rejects where the store can't be asked. */
export interface Operator {
  status(): Promise<OperatorResult<StatusDocument>>;
  /** Sorted by project and compute. */
  computes(query: PageQuery): Promise<OperatorResult<Page<ComputeDocument>>>;
  /** Newest first; `limit` is 1..{@link MOST_PER_PAGE}. */
  decisions(query: { compute?: string | undefined; limit: number }): Promise<OperatorResult<DecisionDocument[]>>;
  holds(query: PageQuery): Promise<OperatorResult<Page<HoldDocument>>>;
  hold(request: HoldRequest): Promise<OperatorResult<HoldDocument>>;
  /** Deletes a hold; or, of a compute, every hold, stopped fights and respected manual changes. */
  release(request: { target: string; owner: string }): Promise<OperatorResult<ReleaseDocument>>;
  freezes(query: PageQuery): Promise<OperatorResult<Page<FreezeDocument>>>;
  freeze(request: FreezeRequest): Promise<OperatorResult<FreezeDocument>>;
  /** One by its id, or all. Gives the ids of those that are gone. */
  thaw(request: { id: string | 'all'; owner: string }): Promise<OperatorResult<{ freezes: string[] }>>;
  approve(request: { hash: string; owner: string }): Promise<OperatorResult<{ hash: string }>>;
  restore(request: RestoreRequest): Promise<OperatorResult<RestoreDocument>>;
  /** What the store remembers, for whoever plans while a daemon has the store. */
  records(query: PageQuery): Promise<OperatorResult<Page<RecordsDocument>>>;
}

/** While the store can't be asked: what is shown is of this instant. */
export interface Staleness {
  since: string;
  /** How old it is. */
  seconds: number;
}

/** What only a running daemon can answer besides. */
export interface DaemonOperator extends Operator {
  /** Undefined while the store answers. */
  staleness(): Staleness | undefined;
  readiness(): Promise<Readiness>;
  /** The whole of /metrics in the Prometheus text format. */
  metricsText(): Promise<{ contentType: string; body: string }>;
  /** The plan of the fleet, in the form of `ebb plan --json`. */
  plan(): Promise<object>;
  /** A page of the fleet, what needs attention first. */
  fleet(query: FleetQuery): Promise<FleetDocument>;
  /** A compute that it knows; at little cost. */
  findCompute(computeId: string): Promise<OperatorResult<ComputeName>>;
  /** A hold in force. */
  findHold(id: string): Promise<OperatorResult<HoldDocument>>;
  /** Everything about one compute. */
  compute(computeId: string): Promise<OperatorResult<ComputeDetailDocument>>;
}
