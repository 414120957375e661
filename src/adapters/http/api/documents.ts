/** What the API answers, as schemas: the OpenAPI document is made of them. Their types are those of the ports. */
import { z } from 'zod';
import { COMPUTE_STATES } from '../../../domain/compute/compute.ts';
import type { FleetPlanJson } from '../../../domain/evaluate/fleet-plan-json.ts';
import { HISTORY_KINDS } from '../../../domain/records/history.ts';
import type { ReleaseDocument, RestoreDocument } from '../../../ports/command-documents.ts';
import {
  type BudgetDocument,
  COMPUTE_STATUSES,
  type ComputeDocument,
  type CostsDocument,
  type DecisionDocument,
  type FreezeDocument,
  type HoldDocument,
  type OperationDocument,
  type ProjectionDocument,
  type StatusDocument,
} from '../../../ports/documents.ts';
import type { Staleness } from '../../../ports/operator.ts';

export const instant = z.string().meta({ format: 'date-time', description: 'In UTC.' });
const cu = z.number().meta({ description: 'CU.' });
const timeout = z.number().int().meta({ description: 'Seconds; -1: never suspends.' });
const hash = z.string().meta({ description: 'The digest of a policy set.' });
export const text = z.string();

const computeName = { project_id: text, compute_id: text };
export const settings = { min_cu: cu.nullable(), max_cu: cu.nullable(), suspend_timeout_seconds: timeout.nullable() };
export const given = { min_cu: cu, max_cu: cu, suspend_timeout_seconds: timeout };
const Settings = z.object(settings);

const Reason = z.object({ code: text, policy: text.optional(), message: text });

/** `code` is a key of `docs/reasons.md`; other versions may know others. */
const reasons = z.array(Reason);

const verdict = z.enum(['act', 'wait', 'none']);

export const computeFields = {
  ...computeName,
  project_name: text,
  branch_id: text,
  type: text,
  status: z.enum(COMPUTE_STATUSES),
  current: z.object({ ...settings, state: z.enum(COMPUTE_STATES) }),
  desired: Settings,
  baseline: Settings,
  verdict,
  reasons,
  until: instant.nullable(),
  next_boundary: instant.nullable(),
};
export const Compute: z.ZodType<Omit<ComputeDocument, 'reasons'>> = z.object(computeFields).meta({ id: 'Compute' });

/** Only in answers to what was just set or ended. */
export const acknowledged = {
  in_flight: z
    .array(z.object({ ...computeName, to: Settings, restart: z.boolean(), since: instant }).meta({ id: 'InFlight' }))
    .exactOptional(),
};

/** In what may change several computes. */
export const counted = {
  count: z.number().int().exactOptional().meta({ description: 'How many computes it changes, or would change.' }),
};

const override = { id: text, owner: text, reason: text, created_at: instant, expires_at: instant.nullable() };

export const Hold: z.ZodType<HoldDocument> = z
  .object({
    ...override,
    ...computeName,
    size: z.object({ min_cu: cu, max_cu: cu }).nullable(),
    suspend_timeout_seconds: timeout.nullable(),
    freeze: z.boolean(),
    limited: text.nullable(),
    ...acknowledged,
  })
  .meta({ id: 'Hold' });

const texts = z.array(text);
const Selected = z.object({
  accounts: texts.exactOptional(),
  projects: texts.exactOptional(),
  branches: texts.exactOptional(),
  computes: texts.exactOptional(),
  regions: texts.exactOptional(),
  types: z.array(z.enum(['read_write', 'read_only'])).exactOptional(),
  branchRoles: z.array(z.enum(['default', 'protected', 'child'])).exactOptional(),
  share: z.number().exactOptional(),
  minAgeMs: z.number(),
});

export const Freeze: z.ZodType<FreezeDocument> = z
  .object({
    ...override,
    select: z.union([z.literal('all'), Selected]),
    allow_raise: z.boolean(),
    covers: z.number().int().exactOptional(),
    ...acknowledged,
  })
  .meta({ id: 'Freeze' });

const changed = z.object({
  min_cu: cu.nullable().exactOptional(),
  max_cu: cu.nullable().exactOptional(),
  suspend_timeout_seconds: timeout.nullable().exactOptional(),
});

/** In whatever is read while the store can't be asked: then it is so old. */
export const age = {
  stale: z.object({ since: instant, seconds: z.number() }).meta({ id: 'Staleness' }).exactOptional(),
} satisfies { stale: z.ZodType<Staleness | undefined> };

export const Decision: z.ZodType<Omit<DecisionDocument, 'reasons'>> = z
  .object({
    at: instant,
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
    id: text.nullable(),
  })
  .meta({ id: 'Decision' });

export const Operation: z.ZodType<OperationDocument> = z
  .object({
    ...computeName,
    operation_id: text,
    action: text,
    started_at: instant,
    policy: text.nullable(),
  })
  .meta({ id: 'Operation' });

const Readiness = z.object({
  ready: z.boolean(),
  checks: z.array(z.object({ name: text, ok: z.boolean(), message: text })),
});

const lowHigh = z.object({ low: z.number(), high: z.number() });
const Projection: z.ZodType<ProjectionDocument> = z
  .object({ low: z.number(), mid: z.number(), high: z.number() })
  .meta({ id: 'Projection', description: 'An estimate, with an interval of 80 %.' });

const known = {
  ...{ cu_hours: z.number(), usd: z.number().nullable(), unknown_hours: z.number() },
  ...{ projected_usd: Projection.nullable(), not_projected: z.enum(['too_few_days', 'too_wide']).exactOptional() },
};

export const Costs: z.ZodType<CostsDocument> = z
  .object({
    ...{ at: instant, from: instant, to: instant, known_until: instant },
    owners: z.array(
      z.object({
        ...{ account: text, owner: text, ...known },
        projected_cu_hours: Projection.nullable(),
        anomaly: z.object({ day: text, cu_hours: z.number(), ordinary_cu_hours: z.number() }).nullable(),
      }),
    ),
    total: z.object(known),
    would_have_saved: z
      .object({
        figure: z.literal('replayed'),
        ...{ computes: z.number(), used_cu_hours: z.number(), cu_hours: lowHigh, usd: lowHigh.nullable() },
        parts: z.array(
          z.object({
            part: z.enum(['sizes', 'timeouts']),
            figure: z.enum(['replayed', 'at_least', 'unknown']),
            cu_hours: lowHigh,
          }),
        ),
      })
      .nullable(),
  })
  .meta({ id: 'Costs' });

const basis = z.enum(['projected', 'spent']);
const Budget: z.ZodType<BudgetDocument> = z
  .object({
    ...{ budget: text, account: text },
    month: z.object({ unit: z.enum(['cu_hours', 'usd']), amount: z.number() }),
    ...{ from: instant, to: instant, known_until: instant, spent: z.number().nullable() },
    ...{ projected: Projection.nullable(), unknown_hours: z.number(), notified: texts },
    limiting: z.array(z.object({ at: z.number(), of: basis, from: instant, until: instant })),
  })
  .meta({ id: 'Budget', description: 'A budget in one account, in CU-hours or dollars.' });

const Daemon = z.object({
  ...{ host: text, version: text, mode: z.enum(['enforce', 'observe']), leader: z.boolean(), last_seen: instant },
  ...{ set_hash: hash, decision_hash: hash.nullable().exactOptional(), staged: texts },
  generation: z.number().nullable().exactOptional(),
  staged_sets: z.array(z.object({ hash, disconnected: z.number() })).exactOptional(),
  waiting: z.array(z.object({ reason: text, computes: z.number() })),
  unmet_headroom: z.array(z.object({ ...computeName, message: text })),
});

export const Status: z.ZodType<StatusDocument> = z
  .object({
    at: instant,
    source: z.enum(['daemon', 'store']),
    mode: z.enum(['enforce', 'observe']).nullable(),
    set_hash: hash.nullable(),
    revision: text.nullable(),
    policies: z.array(z.object({ name: text, kind: text, mode: text, owner: text.nullable() })).nullable(),
    computes: z.record(text, z.number()),
    unread_projects: z.number().nullable(),
    waiting: z.array(z.object({ reason: text, computes: z.number() })),
    holds: z.array(Hold),
    freezes: z.array(Freeze),
    staged: z.object({ hash, message: text }).nullable(),
    staged_teams: z.array(z.object({ owner: text, hash, message: text })),
    policy_problems: texts.nullable(),
    operations: z.array(Operation),
    stopped_fights: z.array(z.object({ ...computeName, fields: texts })),
    degraded: z.array(z.object({ ...computeName, message: text })),
    unmet_headroom: z.array(z.object({ ...computeName, message: text })).nullable(),
    manual_changes: z.array(z.object({ ...computeName, message: text })).nullable(),
    readiness: Readiness.nullable(),
    costs: Costs.nullable(),
    budgets: z.array(Budget),
    dead_notifications: z.array(z.object({ receiver: text, count: z.number() })),
    daemons: z.array(Daemon).nullable(),
    ...age,
  })
  .meta({ id: 'Status' });

export const Released: z.ZodType<ReleaseDocument> = z
  .object({ holds: texts, computes: z.array(z.object(computeName)), budgets: texts, ...counted, ...acknowledged })
  .meta({ id: 'Released' });

export const Restored: z.ZodType<RestoreDocument> = z
  .object({
    computes: z.array(
      z.object({
        ...computeName,
        baseline: Settings,
        outcome: z.enum(['requested', 'policies_decide', 'nothing_to_do', 'withdrawn']),
        policies_decide: z.array(z.enum(['size', 'suspend_timeout'])).exactOptional(),
        set_by: z.object({ size: text.exactOptional(), suspend_timeout: text.exactOptional() }).exactOptional(),
      }),
    ),
    ...counted,
    ...acknowledged,
  })
  .meta({ id: 'Restored' });

const action = z.object({
  kind: z.enum(['update', 'restart']),
  fields: z
    .object({
      min_cu: cu.exactOptional(),
      max_cu: cu.exactOptional(),
      suspend_timeout_seconds: timeout.exactOptional(),
    })
    .exactOptional(),
  disconnects: z.boolean(),
});

const planned = z.object({
  ...computeName,
  current: z.object({ ...given, state: text }),
  desired: Settings,
  verdict,
  actions: z.array(action),
  held: z.array(action).exactOptional(),
  until: instant.exactOptional(),
  reasons: z.array(z.object({ code: text, policy: text.exactOptional(), message: text })),
});
export const Plan: z.ZodType<FleetPlanJson> = z
  .object({ at: instant, hash: text, computes: z.array(planned) })
  .meta({ id: 'Plan' });
