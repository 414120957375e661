/**
 * What ebb tells people and programs, as the HTTP API and `--json` show it: instants are ISO 8601 in UTC, sizes CU, timeouts seconds
 * (−1: never).
 */
import type { Reason } from '../domain/compute/reasons.ts';
import type { SelectorKeys } from '../domain/policy/selector.ts';
import type { ComputeRecord } from '../domain/records/compute-record.ts';
import type { HistoryKind } from '../domain/records/history.ts';
import type { ConnectionSample } from './store.ts';

export interface Readiness {
  ready: boolean;
  /** One line for each part that must be there: queue, store, policies, control API. */
  checks: { name: string; ok: boolean; message: string }[];
}

/** What ebb does with a compute. `orphaned`: ebb has changed it, and no policy selects it any more. */
export const COMPUTE_STATUSES = [
  'enforced',
  'observed',
  'unmatched',
  'held',
  'frozen',
  'orphaned',
  'degraded',
] as const;
export type ComputeStatus = (typeof COMPUTE_STATUSES)[number];

/** Null: no value, or not known. */
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
  /** A token named that person. */
  verified: boolean;
  request_id: string | null;
  /** Who owned the compute. */
  owner: string | null;
  /** Entries of the audit have one. */
  id: string | null;
}

interface OverrideDocument {
  id: string;
  owner: string;
  reason: string;
  created_at: string;
  /** Null: does not expire, as a stored freeze that this version can not read. */
  expires_at: string | null;
}

/** A change that had been sent, or was about to be, when something was acknowledged: it may still arrive. */
export interface InFlightDocument extends ComputeName {
  /** What it sets; null: nothing of this field. */
  to: SettingsDocument;
  restart: boolean;
  since: string;
}

/** Only in the answer to the request that has set or ended something: which changes of its computes were already on their way. */
export interface Acknowledged {
  in_flight?: InFlightDocument[];
}

export interface HoldDocument extends OverrideDocument, Acknowledged {
  project_id: string;
  compute_id: string;
  size: { min_cu: number; max_cu: number } | null;
  suspend_timeout_seconds: number | null;
  /** True: nothing is written to the compute. */
  freeze: boolean;
  /** What hard limits make of it, in one sentence; null where nothing, or where no daemon was asked. */
  limited: string | null;
}

export interface FreezeDocument extends OverrideDocument, Acknowledged {
  select: SelectorKeys | 'all';
  allow_raise: boolean;
  /** How many computes it concerns; only in the answer to who has set it, where that is known. */
  covers?: number;
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

/** US dollars or CU-hours of a whole month: in the middle, and an interval of 80 %. An estimate. */
export interface ProjectionDocument {
  low: number;
  mid: number;
  high: number;
}

/** What an owner has used and spent; null is not known: a price without `plan`, a projection for one of the reasons in `not_projected`. */
export interface OwnerCostsDocument {
  account: string;
  owner: string;
  /** Known CU-hours. */
  cu_hours: number;
  usd: number | null;
  /** Hours of projects that should be known and are not; they are in no sum. */
  unknown_hours: number;
  projected_usd: ProjectionDocument | null;
  /** Why `projected_usd` is null although the price is known: less than a week of known days, or an interval too wide to help. */
  not_projected?: 'too_few_days' | 'too_wide';
  projected_cu_hours: ProjectionDocument | null;
  /** Yesterday (UTC), if it used more than the 99 % interval of that weekday. */
  anomaly: { day: string; cu_hours: number; ordinary_cu_hours: number } | null;
}

/** Measured compute of this billing month. Storage and transfer are not in it. */
export interface CostsDocument {
  /** When it was added up. */
  at: string;
  /** The billing month. */
  from: string;
  to: string;
  known_until: string;
  /** Most CU-hours first. */
  owners: OwnerCostsDocument[];
  total: Pick<OwnerCostsDocument, 'cu_hours' | 'usd' | 'unknown_hours' | 'projected_usd' | 'not_projected'>;
  /** In observe mode: what enforcing would have saved of the measured hours of the last two weeks; null otherwise. */
  would_have_saved: CounterfactualDocument | null;
}

/** Measured hours, replayed under the sizes and timeouts of policies. Negative: they would have cost more. */
export interface CounterfactualDocument {
  figure: 'replayed';
  computes: number;
  /** CU-hours that were used in these hours. */
  used_cu_hours: number;
  cu_hours: { low: number; high: number };
  usd: { low: number; high: number } | null;
  /** What makes it up. Of shorter timeouts only the low end is promised: `at_least`; `unknown`: when computes were awake is not known. */
  parts: {
    part: 'sizes' | 'timeouts';
    figure: 'replayed' | 'at_least' | 'unknown';
    cu_hours: { low: number; high: number };
  }[];
}

/** A budget in one account: amounts in the unit of `month`; null is not known. */
export interface BudgetDocument {
  budget: string;
  account: string;
  month: { unit: 'cu_hours' | 'usd'; amount: number };
  /** The billing month. */
  from: string;
  to: string;
  known_until: string;
  spent: number | null;
  projected: ProjectionDocument | null;
  unknown_hours: number;
  /** Steps of which receivers were notified this month, such as `80% projected`. */
  notified: string[];
  /** Steps that limit now; `until` is the end of the month, or when the step ended: computes follow over the next six hours. */
  limiting: { at: number; of: 'projected' | 'spent'; from: string; until: string }[];
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
  /** Projects that are listed and were not read yet, as after a start; null of a store. */
  unread_projects: number | null;
  /** What waits, by the gate that holds it. */
  waiting: { reason: string; computes: number }[];
  holds: readonly HoldDocument[];
  freezes: readonly FreezeDocument[];
  /** The policy set that waits for `ebb approve`. */
  staged: { hash: string; message: string } | null;
  /** What waits for it of the files of teams. */
  staged_teams: { owner: string; hash: string; message: string }[];
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
  /** What this month has cost; null while nothing was measured. */
  costs: CostsDocument | null;
  /** Of which anything is known. */
  budgets: BudgetDocument[];
  /** Receivers of notifications that could not be sent, and wait for a person. */
  dead_notifications: { receiver: string; count: number }[];
  /** Who shares the store, the leader first; null where one of them was asked. */
  daemons: DaemonDocument[] | null;
}

/** What a daemon tells of itself in the store every 30 s. */
export interface DaemonDocument {
  /** `HOST:PID`. */
  host: string;
  version: string;
  mode: 'enforce' | 'observe';
  leader: boolean;
  /** One that has ended gracefully is gone; what was killed stays for a day. */
  last_seen: string;
  /** Of the policies that it decides by. */
  set_hash: string;
  /** Of all by which it decides; null while it may not write, absent in what a daemon of 0.1.0 reports. */
  decision_hash?: string | null;
  /** Number of the generation that it has registered; null where it could not take over with it. */
  generation?: number | null;
  /** One line each. */
  staged: string[];
  /** The same sets, and how many computes each would disconnect at once; absent in what a daemon of 0.1.0 reports. */
  staged_sets?: { hash: string; disconnected: number }[];
  waiting: StatusDocument['waiting'];
  /** The first few. */
  unmet_headroom: NonNullable<StatusDocument['unmet_headroom']>;
}

/** What the store keeps of a unit of an organization. */
export interface UsageDocument {
  /** `PROJECT` or `PROJECT/BRANCH`; a space for what concerns the whole organization. */
  unit: string;
  /** Base64; only ebb interprets it. */
  bytes: string;
}

export interface RecordsDocument {
  project_id: string;
  /** By id of the compute. */
  records: Record<string, ComputeRecord>;
  /** What was counted of their connections, oldest first; those without are left out, and all where no policy asks for it. */
  samples: Record<string, readonly ConnectionSample[]>;
}
