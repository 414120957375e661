/** Further documents of the status page and the HTTP API. Forms as in documents.ts. */
import { z } from 'zod';
import { BranchCostDocument } from './cost-documents.ts';
import { instant, text } from './document-fields.ts';
import {
  computeFields,
  DecisionDocument,
  FreezeDocument,
  HoldDocument,
  knownSettings,
  OperationDocument,
  projectsRead,
  refusedProjects,
  staleness,
} from './documents.ts';
import { remedy, verdictOfGuard } from './plan-document.ts';

/**
 * A time span, `from` inclusive, `to` exclusive, in which the desired settings don't change. `policies`: the names of the policies that set
 * them, or `hold by OWNER`; empty where nothing sets a value.
 */
const SegmentDocument = z.object({ from: instant, to: instant, ...knownSettings, policies: z.array(text) });
export type SegmentDocument = z.infer<typeof SegmentDocument>;

/** The forecast of seven days, without gaps, as in `ebb forecast`. `not_yet`: ask again. `too_often`: a policy changes too often for a forecast. */
const WeekDocument = z
  .union([
    z.object({ state: z.literal('known'), segments: z.array(SegmentDocument) }),
    z.object({ state: z.enum(['not_yet', 'too_often']) }),
  ])
  .meta({ id: 'Week' });
export type WeekDocument = z.infer<typeof WeekDocument>;

const rowFields = {
  ...computeFields,
  branch_name: text.nullable(),
  /** The owner by `owners` of the settings, or else by policies, as for costs; or else `unowned`. */
  owner: text,
  /** Since when a change has been due but is not made, as in an outage of the control API; null if none is overdue. */
  overdue_since: instant.nullable(),
  week: WeekDocument,
};
const FleetRowDocument = z.object(rowFields).meta({ id: 'FleetRow' });
export type FleetRowDocument = z.infer<typeof FleetRowDocument>;

/** `min_cu`, `max_cu`: sums over the active computes, in CU. */
const totals = { computes: z.number(), active: z.number(), min_cu: z.number(), max_cu: z.number() };
const FleetTotals = z.object(totals);
export type FleetTotals = z.infer<typeof FleetTotals>;

const dueChanges = z.object({ computes: z.number(), first: instant.nullable() });

export const FleetDocument = z
  .object({
    at: instant,
    projects: projectsRead,
    /** Computes that have been read, and those that match the query. */
    known: z.number(),
    matched: z.number(),
    /** From 1. */
    page: z.number(),
    pages: z.number(),
    /** Matching computes with an overdue change, and the first such change. */
    overdue: dueChanges,
    /** Matching computes that a policy changes within an hour, and the first such change. */
    next_hour: dueChanges,
    /**
     * Matching computes that a policy changes within a day; overdue changes are left out. A compute counts for the hour (UTC) of its next change.
     * The changes of an hour are from `first` to `last`. Owners with the most computes come first.
     */
    upcoming: z.array(
      z.object({
        first: instant,
        last: instant,
        computes: z.number(),
        owners: z.array(z.object({ owner: text, computes: z.number() })),
      }),
    ),
    /**
     * How many CU less the matching computes use at this moment than with their baselines, by sizes and states: a range, negative if they use
     * more. `computes`: those for which policies have set a value.
     */
    saved_now: z.object({ computes: z.number(), low_cu: z.number(), high_cu: z.number() }),
    /** The totals of all computes that matched; `groups`: by group if requested, the largest first. */
    totals: FleetTotals,
    groups: z.array(z.object({ name: text, ...totals })),
    /** Owners of the whole fleet. */
    owners: z.array(text),
    /** In the requested order. */
    computes: z.array(FleetRowDocument),
    ...staleness,
  })
  .meta({ id: 'Fleet' });
export type FleetDocument = z.infer<typeof FleetDocument>;

const value = z.union([z.object({ min_cu: z.number(), max_cu: z.number() }), z.number(), z.null()]);

/** A step of a decision, as in `ebb explain --json`. */
const TraceStepDocument = z.object({
  group: text,
  code: text,
  policy: text.exactOptional(),
  mode: text.exactOptional(),
  hold: text.exactOptional(),
  before: value.exactOptional(),
  after: value.exactOptional(),
  connections: z.object({ peak: z.number(), need: z.number(), usable: z.number() }).exactOptional(),
  /** The minimum that keeps the size from giving more connections. */
  minimum: z.object({ min_cu: z.number(), allows_cu: z.number() }).exactOptional(),
  message: text,
});
export type TraceStepDocument = z.infer<typeof TraceStepDocument>;

const GuardViewDocument = z.object({
  guard: text,
  remedy,
  asked_first: z.boolean(),
  verdict: verdictOfGuard,
  watch: z
    .object({
      lowered_at: instant,
      sampled_seconds: z.number(),
      blind_seconds: z.number(),
      bad_since: instant.nullable(),
      common_cause: z.boolean(),
      message: text,
    })
    .nullable(),
});
const FindingOfGuard = z.object({
  guard: text,
  lowered_at: instant,
  bad_since: instant,
  found_at: instant,
  message: text,
});
const FloorDocument = z.object({
  field: z.enum(['size', 'suspend_timeout']),
  guard: text,
  policy: text,
  since: instant,
  /** The end by `retry`; null: when the policy changes. */
  until: instant.nullable(),
  in_effect: z.boolean(),
  at_least: z.object({
    min_cu: z.number().exactOptional(),
    max_cu: z.number().exactOptional(),
    suspend_timeout_seconds: z.number().exactOptional(),
  }),
  release: text,
});

export const ComputeDetailDocument = z
  .object({
    at: instant,
    /** When its present values were read from the control API; null if unknown. */
    read_at: instant.nullable(),
    /** The kinds of requests for the compute's project that the control API refuses now. */
    refused: refusedProjects,
    ...rowFields,
    region_id: text,
    disabled: z.boolean(),
    /** The steps that led to `desired`. */
    trace: z.array(TraceStepDocument),
    /** The guards that select the compute, their last finding, and the compute's floors; absent if there are none. */
    guards: z.array(GuardViewDocument).exactOptional(),
    guard_finding: FindingOfGuard.exactOptional(),
    floors: z.array(FloorDocument).exactOptional(),
    holds: z.array(HoldDocument),
    /** The freezes by people that select it. */
    freezes: z.array(FreezeDocument),
    /** Active policies of `kind: freeze` that select it; `until` is null if no end is known. */
    freezing_policies: z.array(z.object({ policy: text, until: instant.nullable(), allow_raise: z.boolean() })),
    operations: z.array(OperationDocument),
    /** Newest first. */
    decisions: z.array(DecisionDocument),
    /** The costs of its branch with all its computes; null where usage is not measured. */
    cost: BranchCostDocument.nullable(),
    ...staleness,
  })
  .meta({ id: 'ComputeDetail' });
export type ComputeDetailDocument = z.infer<typeof ComputeDetailDocument>;

export const FLEET_ORDERS = ['attention', 'compute', 'project', 'size', 'next'] as const;
export const FLEET_GROUPS = ['owner', 'project'] as const;

/** Selects computes of a fleet. */
export interface FleetFilter {
  /** Words that must all occur in ids, names, state, status or a policy's name. */
  q: string;
  /** Whole names. */
  owner?: string | undefined;
  project?: string | undefined;
  policy?: string | undefined;
  status?: string | undefined;
  /** A gate that blocks a change. */
  reason?: string | undefined;
}

export interface FleetQuery extends FleetFilter {
  sort?: (typeof FLEET_ORDERS)[number] | undefined;
  group?: (typeof FLEET_GROUPS)[number] | undefined;
  /** From 1; one beyond the end gives the last. */
  page: number;
  /** Computes on a page; {@link COMPUTES_PER_PAGE} by default. */
  perPage?: number | undefined;
}

/** Computes on a page of the API's fleet. */
export const COMPUTES_PER_PAGE = 300;
