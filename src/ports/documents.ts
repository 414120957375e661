/**
 * Documents of the HTTP API and of `--json`, as schemas from which types and the OpenAPI document are derived. Instants are ISO 8601 in UTC,
 * sizes CU, timeouts seconds (-1: never). Null: no value, or unknown.
 */
import { z } from 'zod';
import { COMPUTE_STATES } from '../domain/compute/compute.ts';
import type { SelectorKeys } from '../domain/policy/selector.ts';
import { HISTORY_KINDS } from '../domain/records/history.ts';
import { COMPUTE_STATUSES } from './compute-events.ts';
import { BudgetDocument, CostsDocument } from './cost-documents.ts';
import { estimate, instant, text } from './document-fields.ts';

const texts = z.array(text);
export const cu = z.number().meta({ description: 'CU.' });
export const timeout = z.number().int().meta({ description: 'Seconds; -1: never suspends.' });
const hash = z.string().meta({ description: 'The digest of a policy set.' });

export const computeName = { project_id: text, compute_id: text };
export interface ComputeName {
  project_id: string;
  compute_id: string;
}

const settings = { min_cu: cu.nullable(), max_cu: cu.nullable(), suspend_timeout_seconds: timeout.nullable() };
/** Settings without unknown values. */
export const knownSettings = { min_cu: cu, max_cu: cu, suspend_timeout_seconds: timeout };

export const SettingsDocument = z.object(settings);
export type SettingsDocument = z.infer<typeof SettingsDocument>;

export const reason = z.object({ code: text, policy: text.exactOptional(), message: text });
/** `code` is a key of `docs/reasons.md`; a daemon of another version may send other codes. */
const reasons: z.ZodType<readonly { code: string; policy?: string; message: string }[]> = z.array(reason);

export const verdict = z.enum(['act', 'wait', 'none']);

export const computeFields = {
  ...computeName,
  project_name: text,
  branch_id: text,
  type: text,
  status: z.enum(COMPUTE_STATUSES),
  current: z.object({ ...settings, state: z.enum(COMPUTE_STATES) }),
  desired: SettingsDocument,
  baseline: SettingsDocument,
  verdict,
  reasons,
  /** When the wait of the change ends, where known. */
  until: instant.nullable(),
  /** The next instant at which policies want other values. */
  next_boundary: instant.nullable(),
  /**
   * When the values change next. Later than `next_boundary` if a freeze, a hold or a respected manual change keeps the compute as it is.
   * In the past, if the change has not been decided yet.
   */
  next_change: instant.nullable(),
};
export const ComputeDocument = z.object(computeFields).meta({ id: 'Compute' });
export type ComputeDocument = z.infer<typeof ComputeDocument>;

/** A change that was sent, or about to be sent, when a request was answered: it may still take effect. In `to`, null means: not changed. */
const InFlightDocument = z
  .object({ ...computeName, to: SettingsDocument, restart: z.boolean(), since: instant })
  .meta({ id: 'InFlight' });
export type InFlightDocument = z.infer<typeof InFlightDocument>;

/** Only in the answer to a request that sets or ends something. */
const inFlight = { in_flight: z.array(InFlightDocument).exactOptional() };

/** In the answer to a request that may change several computes; absent where unknown, as from a daemon of 0.1.0. */
const changedCount = {
  count: z.number().int().exactOptional().meta({ description: 'How many computes it changes, or would change.' }),
};

/** `expires_at` null: never, as for a stored freeze that this version can't read. */
const override = { id: text, owner: text, reason: text, created_at: instant, expires_at: instant.nullable() };

export const HoldDocument = z
  .object({
    ...override,
    ...computeName,
    size: z.object({ min_cu: cu, max_cu: cu }).nullable(),
    suspend_timeout_seconds: timeout.nullable(),
    /** True: nothing is written to the compute. */
    freeze: z.boolean(),
    /** What hard limits, or a person's later change of the compute, change in the held values, as text; null if nothing is known to. */
    limited: text.nullable(),
    ...inFlight,
  })
  .meta({ id: 'Hold' });
export type HoldDocument = z.infer<typeof HoldDocument>;

export const selectorKeys = {
  accounts: texts.exactOptional(),
  projects: texts.exactOptional(),
  scope: texts.exactOptional(),
  branches: texts.exactOptional(),
  computes: texts.exactOptional(),
  regions: texts.exactOptional(),
  types: z.array(z.enum(['read_write', 'read_only'])).exactOptional(),
  branchRoles: z.array(z.enum(['default', 'protected', 'child'])).exactOptional(),
  share: z.number().exactOptional(),
  minAgeMs: z.number(),
};
const Selected: z.ZodType<SelectorKeys> = z.object(selectorKeys);

export const FreezeDocument = z
  .object({
    ...override,
    select: z.union([z.literal('all'), Selected]),
    allow_raise: z.boolean(),
    /** The freeze is limited to the projects of this team. */
    team: text.exactOptional(),
    /** The number of selected computes; only in the answer to the request that has set the freeze, where known. */
    covers: z.number().int().exactOptional(),
    /** Set if `covers` may be too low, since the daemon has not read all projects yet. */
    partial: z.literal(true).exactOptional(),
    ...inFlight,
  })
  .meta({ id: 'Freeze' });
export type FreezeDocument = z.infer<typeof FreezeDocument>;

const changed = z.object({
  min_cu: cu.nullable().exactOptional(),
  max_cu: cu.nullable().exactOptional(),
  suspend_timeout_seconds: timeout.nullable().exactOptional(),
});

export const DecisionDocument = z
  .object({
    at: instant,
    /** The ids are empty where the entry concerns the whole fleet. */
    ...computeName,
    kind: z.enum(HISTORY_KINDS),
    policy: text.nullable(),
    set_hash: hash,
    revision: text.nullable(),
    from: changed.nullable(),
    to: changed.nullable(),
    reasons,
    who: text.nullable(),
    verified: z.boolean().meta({ description: 'A token named that person.' }),
    request_id: text.nullable(),
    owner: text.nullable().meta({ description: 'Who owned the compute.' }),
    /** Null for an entry that is not from the audit. */
    id: text.nullable(),
  })
  .meta({ id: 'Decision' });
export type DecisionDocument = z.infer<typeof DecisionDocument>;

/** An operation that ebb has started and that has not ended. */
export const OperationDocument = z
  .object({ ...computeName, operation_id: text, action: text, started_at: instant, policy: text.nullable() })
  .meta({ id: 'Operation' });
export type OperationDocument = z.infer<typeof OperationDocument>;

/** What floors cost, in dollars where the price is known. */
const costOfFloors = z.object({ cu_hours: estimate, usd: estimate.nullable() });

/** One check for each of queue, store, policies and control API. */
const ReadinessDocument = z.object({
  ready: z.boolean(),
  checks: z.array(z.object({ name: text, ok: z.boolean(), message: text })),
});
export type Readiness = z.infer<typeof ReadinessDocument>;

/** `read` counts the projects whose computes have been read, which are few after a start. */
export const projectsRead = z.object({ listed: z.number(), read: z.number() });

const waiting = z.array(z.object({ reason: text, computes: z.number() }));
const computeMessages = z.array(z.object({ ...computeName, message: text }));

const facts = z.array(z.object({ account: text, fact: text, value: text, verified: z.boolean(), promise: text }));

/** Boundaries of the next half hour at which more than 100 computes of an account change. Live reads of the fleet wait meanwhile. */
const herds = z.array(z.object({ account: text, first: instant, last: instant, computes: z.number() }));
export type HerdDocument = z.infer<typeof herds>[number];

/**
 * The accounts that use less than their rate limit, or whose requests wait for it. Above level 0, `since` is the instant of the last answer
 * 429, and from `normal_by` on the whole limit is used again. At level 0, requests have waited since `since`, until about `normal_by`.
 */
const apiLimits = z.array(
  z.object({ account: text, level: z.number(), since: instant, normal_by: instant, message: text }),
);

/** A project whose requests of one kind the control API refuses, while it answers those for other projects. `message` is its latest answer. */
const RefusedProjectDocument = z.object({
  project_id: text,
  project_name: text,
  /** `read`: its computes can't be read, so nothing is changed. */
  request: z.enum(['read', 'branches', 'operations', 'write']),
  message: text,
  since: instant,
});
export type RefusedProjectDocument = z.infer<typeof RefusedProjectDocument>;
export const refusedProjects = z.array(RefusedProjectDocument);

/** The report that a daemon stores every 10 s. Long lists are cut. Optional fields are absent in reports of 0.1.0. */
const DaemonDocument = z.object({
  /** `HOST:PID`. */
  host: text,
  version: text,
  mode: z.enum(['enforce', 'observe']),
  /** In a status also false for a leader whose lease has probably ended, since its last report is older than that. */
  leader: z.boolean(),
  /** A daemon that ended gracefully has no report. The report of a killed one stays for a day. */
  last_seen: instant,
  /** The hash of its policies. */
  set_hash: hash,
  /** Null while the daemon may not write. */
  decision_hash: hash.nullable().exactOptional(),
  /** One line for each staged policy set. */
  staged: texts,
  /** The number of its registered generation; null if it could not be registered. */
  generation: z.number().nullable().exactOptional(),
  /**
   * In the order of `staged`. `disconnected`: the number of computes that the set would disconnect, `later` of them not at once. `owner`: the team
   * that the files belong to, or '' for none. `hash` is what a person approves; `set_hash` is of the policies alone, without the settings.
   */
  staged_sets: z
    .array(
      z.object({
        hash,
        disconnected: z.number(),
        later: z.number().exactOptional(),
        owner: text.exactOptional(),
        set_hash: hash.exactOptional(),
      }),
    )
    .exactOptional(),
  /** Why the daemon does not use the newest policies, besides `staged`: one line each. */
  policy_problems: texts.exactOptional(),
  waiting,
  unmet_headroom: computeMessages,
  /** Of the first few accounts. */
  facts: facts.exactOptional(),
  herds: herds.exactOptional(),
  api_limits: apiLimits.exactOptional(),
  refused_projects: refusedProjects.exactOptional(),
  /** Only the checks that failed. */
  readiness: ReadinessDocument.exactOptional(),
  projects: projectsRead.exactOptional(),
});
export type DaemonDocument = z.infer<typeof DaemonDocument>;

/** The store has been unavailable since `since`: the data are of that time. */
const StalenessDocument = z.object({ since: instant, seconds: z.number() }).meta({ id: 'Staleness' });
export type Staleness = z.infer<typeof StalenessDocument>;
/** `stale` is set in each document that is read while the store is unavailable. */
export const staleness = { stale: StalenessDocument.exactOptional() };

/** A status has at most this many entries of each list. */
export const MAX_LISTED = 100;

export const StatusDocument = z
  .object({
    at: instant,
    /** `store`: no daemon was asked, so fields that only a daemon knows are null. */
    source: z.enum(['daemon', 'store']),
    mode: z.enum(['enforce', 'observe']).nullable(),
    set_hash: hash.nullable(),
    revision: text.nullable(),
    policies: z.array(z.object({ name: text, kind: text, mode: text, owner: text.nullable() })).nullable(),
    /** Counts by status; from a store only `known` and `degraded`. */
    computes: z.record(text, z.number()),
    /** Listed projects that were not read yet, as after a start; null from a store. */
    unread_projects: z.number().nullable(),
    /** Listed projects, and those that were read; from a store as the leader last reported them. Null if unknown. */
    projects: projectsRead.nullable(),
    /** Counts of waiting changes, by the gate that holds them. */
    waiting,
    holds: z.array(HoldDocument),
    freezes: z.array(FreezeDocument),
    /** The policy set that waits for `ebb approve`. `hash` approves it; `set_hash` is of the policies alone. */
    staged: z.object({ hash, set_hash: hash.exactOptional(), message: text }).nullable(),
    /** Staged files of teams. */
    staged_teams: z.array(z.object({ owner: text, hash, set_hash: hash.exactOptional(), message: text })),
    /** Other reasons for not using the newest policies, such as broken files: one line each. */
    policy_problems: texts.nullable(),
    /** Oldest first. */
    operations: z.array(OperationDocument),
    stopped_fights: z.array(z.object({ ...computeName, fields: texts })),
    degraded: computeMessages,
    /** Computes that need more connections than any size that policies allow gives them. Null from a store, like the next two fields. */
    unmet_headroom: computeMessages.nullable(),
    /** Respected manual changes that differ from what policies want: old and new value, and the end of the respect. */
    manual_changes: computeMessages.nullable(),
    /** For each guard: computes by their last verdict, computes that it watches after a lowering, and computes whose lowering it holds back. */
    guards: z
      .array(
        z.object({
          guard: text,
          asked_at: instant.nullable(),
          healthy: z.number(),
          bad: z.number(),
          unknown: z.number(),
          watched: z.number(),
          held_back: z.number(),
        }),
      )
      .nullable(),
    /** Computes that guards watch after a lowering; `sampled_seconds`: awake, with samples. */
    guard_watches: z
      .array(
        z.object({
          ...computeName,
          guard: text,
          lowered_at: instant,
          sampled_seconds: z.number(),
          bad_since: instant.nullable(),
          message: text,
        }),
      )
      .nullable(),
    /**
     * Computes that guards keep above what policies want now: old and new value, and what policies would save a month of 730 h without
     * the floors of the compute.
     */
    guard_floors: z
      .array(z.object({ ...computeName, message: text, cost_month: costOfFloors.nullable().exactOptional() }))
      .nullable(),
    readiness: ReadinessDocument.nullable(),
    /** Null if nothing has been measured yet. */
    costs: CostsDocument.nullable(),
    /** Only budgets with data. */
    budgets: z.array(BudgetDocument),
    /** Numbers of notifications that could not be sent, and wait for a person. */
    dead_notifications: z.array(z.object({ receiver: text, count: z.number() })),
    /** Facts about the control API on which promises rest (docs/verify.md); from a store as the leader last reported them. */
    facts: facts.nullable(),
    herds: herds.nullable(),
    /** From a store as the daemons last reported them, like the next field. Null if unknown. */
    api_limits: apiLimits.nullable(),
    refused_projects: refusedProjects.nullable(),
    /** The daemons that share the store, the leader first; null from a daemon. */
    daemons: z.array(DaemonDocument).nullable(),
    ...staleness,
  })
  .meta({ id: 'Status' });
export type StatusDocument = z.infer<typeof StatusDocument>;

/** `later`: how many of the `count` computes would wait first, for example because ebb has just discovered or restarted them. */
export const ApproveDocument = z.object({ hash: text, ...changedCount, later: z.number().int().exactOptional() });
export type ApproveDocument = z.infer<typeof ApproveDocument>;

/** `freezes`: the ids of the ended freezes. `count`: the number of computes with a change that one of these freezes blocked. */
export const UnfreezeDocument = z.object({ freezes: texts, ...changedCount, ...inFlight });
export type UnfreezeDocument = z.infer<typeof UnfreezeDocument>;

export const ReleaseDocument = z
  .object({
    /** Ids of the deleted holds. */
    holds: texts,
    /** Computes whose stopped fights or respected manual changes are forgotten. */
    computes: z.array(z.object(computeName)),
    /** Names of budgets whose steps the leader will end. */
    budgets: texts,
    ...changedCount,
    ...inFlight,
  })
  .meta({ id: 'Released' });
export type ReleaseDocument = z.infer<typeof ReleaseDocument>;

/**
 * Outcomes. `requested`: the fields that no policy sets go back to the baseline. `policies_decide`: policies would change the compute again,
 * so a hold is needed. `nothing_to_do`: ebb has not changed the compute, it has its baseline already, or there is no request to withdraw.
 * `withdrawn`: the request to go back was withdrawn.
 */
export const RestoreDocument = z
  .object({
    computes: z.array(
      z.object({
        ...computeName,
        baseline: SettingsDocument,
        outcome: z.enum(['requested', 'policies_decide', 'nothing_to_do', 'withdrawn']),
        /** The fields that do not go back, because policies set them. */
        policies_decide: z.array(z.enum(['size', 'suspend_timeout'])).exactOptional(),
        /** The policy that sets each of them. */
        set_by: z.object({ size: text.exactOptional(), suspend_timeout: text.exactOptional() }).exactOptional(),
        /** Only in a preview of all computes, where the owner is known. */
        owner: text.exactOptional(),
      }),
    ),
    ...changedCount,
    ...inFlight,
  })
  .meta({ id: 'Restored' });
export type RestoreDocument = z.infer<typeof RestoreDocument>;
