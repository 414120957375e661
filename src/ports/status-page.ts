/** Documents of the status page beyond those of commands; the HTTP API gives the same. Forms as in documents.ts. */
import { z } from 'zod';
import { BranchCostDocument } from './cost-documents.ts';
import { instant, text } from './document-fields.ts';
import { age, computeFields, DecisionDocument, given, HoldDocument, OperationDocument } from './documents.ts';

/**
 * A stretch of time, `from` inclusive, `to` exclusive, in which nothing changes that policies set. `policies`: who decided it, by name
 * or `hold by OWNER`; empty where nothing sets a value.
 */
const SegmentDocument = z.object({ from: instant, to: instant, ...given, policies: z.array(text) });
export type SegmentDocument = z.infer<typeof SegmentDocument>;

/**
 * The forecast of seven days, without gaps; as `ebb forecast`. `not_yet`: not computed yet, ask again. `too_often`: a policy changes so
 * often that it is not computed.
 */
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
  /** By `owners` of the settings, else by policies, as for costs; `unowned` if there is none. */
  owner: text,
  week: WeekDocument,
};
const FleetRowDocument = z.object(rowFields).meta({ id: 'FleetRow' });
export type FleetRowDocument = z.infer<typeof FleetRowDocument>;

/** `min_cu`, `max_cu`: the range of the active ones now, in CU. */
const totals = { computes: z.number(), active: z.number(), min_cu: z.number(), max_cu: z.number() };
const FleetTotals = z.object(totals);
export type FleetTotals = z.infer<typeof FleetTotals>;

export const FleetDocument = z
  .object({
    at: instant,
    /** Projects that are listed, and those of them whose computes are known: after a start few. */
    projects: z.object({ listed: z.number(), read: z.number() }),
    /** The number of known computes, and of those that match the query. */
    known: z.number(),
    matched: z.number(),
    /** From 1. */
    page: z.number(),
    pages: z.number(),
    /** Of those that match: computes of which something changes within an hour by policy, and when the first does. */
    next_hour: z.object({ computes: z.number(), first: instant.nullable() }),
    /** The next change by policy of each that matched, within a day: by the hour (UTC) in which it is, and by owner, the most first. */
    upcoming: z.array(
      z.object({
        first: instant,
        computes: z.number(),
        owners: z.array(z.object({ owner: text, computes: z.number() })),
      }),
    ),
    /** Totals of all that matched, and by group where that was asked for, the largest first. */
    totals: FleetTotals,
    groups: z.array(z.object({ name: text, ...totals })),
    /** Owners of the whole fleet, to choose from. */
    owners: z.array(text),
    /** In the order that was asked for. */
    computes: z.array(FleetRowDocument),
    ...age,
  })
  .meta({ id: 'Fleet' });
export type FleetDocument = z.infer<typeof FleetDocument>;

const value = z.union([z.object({ min_cu: z.number(), max_cu: z.number() }), z.number(), z.null()]);

/** One step on the way to a decision, as `ebb explain --json` has it. */
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

export const ComputeDetailDocument = z
  .object({
    at: instant,
    ...rowFields,
    region_id: text,
    disabled: z.boolean(),
    /** The steps that led to `desired`. */
    trace: z.array(TraceStepDocument),
    holds: z.array(HoldDocument),
    operations: z.array(OperationDocument),
    /** Newest first. */
    decisions: z.array(DecisionDocument),
    /** Of its branch, with all computes of that; null where usage is not measured. */
    cost: BranchCostDocument.nullable(),
    ...age,
  })
  .meta({ id: 'ComputeDetail' });
export type ComputeDetailDocument = z.infer<typeof ComputeDetailDocument>;

export const FLEET_ORDERS = ['attention', 'compute', 'project', 'size', 'next'] as const;
export const FLEET_GROUPS = ['owner', 'project'] as const;

/** Which computes of a fleet. */
export interface FleetFilter {
  /** Words that must all occur in ids, names, state, status or a policy's name; everything if it is empty. */
  q: string;
  /** Names, each as a whole; absent: any. */
  owner?: string | undefined;
  project?: string | undefined;
  policy?: string | undefined;
  status?: string | undefined;
  /** A gate that holds a change back. */
  reason?: string | undefined;
}

export interface FleetQuery extends FleetFilter {
  sort?: (typeof FLEET_ORDERS)[number] | undefined;
  group?: (typeof FLEET_GROUPS)[number] | undefined;
  /** From 1; one beyond the end gives the last. */
  page: number;
}

/** Computes on a page of the fleet. */
export const COMPUTES_PER_PAGE = 300;
