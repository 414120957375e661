/** This month's compute cost, by owner and budget. Forms as in documents.ts. */
import { z } from 'zod';
import { instant, text } from './document-fields.ts';

const texts = z.array(text);
const lowHigh = z.object({ low: z.number(), high: z.number() });
/** Daemons before 0.2 don't report `mid`. */
const estimate = lowHigh.extend({ mid: z.number().optional() });
/** US dollars or CU-hours of a whole month. */
const ProjectionDocument = z
  .object({ low: z.number(), mid: z.number(), high: z.number() })
  .meta({ id: 'Projection', description: 'An estimate, with an interval of 80 %.' });
export type ProjectionDocument = z.infer<typeof ProjectionDocument>;

const sums = {
  /** Known CU-hours. */
  cu_hours: z.number(),
  /** Null without a price: `plan` is not set. */
  usd: z.number().nullable(),
  /** Project-hours whose usage is missing; they are in no sum. */
  unknown_hours: z.number(),
  projected_usd: ProjectionDocument.nullable(),
  /** Why `projected_usd` is null although the price is known: less than a week of known days, or an interval too wide to help. */
  not_projected: z.enum(['too_few_days', 'too_wide']).exactOptional(),
};

const OwnerCostsDocument = z.object({
  account: text,
  owner: text,
  ...sums,
  projected_cu_hours: ProjectionDocument.nullable(),
  /** Yesterday (UTC), if it used more than the 99 % interval of that weekday. */
  anomaly: z.object({ day: text, cu_hours: z.number(), ordinary_cu_hours: z.number() }).nullable(),
});
export type OwnerCostsDocument = z.infer<typeof OwnerCostsDocument>;

/** Measured hours of the last two weeks, replayed under the sizes and timeouts of policies. Negative: they would have cost more. */
const CounterfactualDocument = z.object({
  figure: z.literal('replayed'),
  computes: z.number(),
  /** CU-hours that were used in these hours. */
  used_cu_hours: z.number(),
  cu_hours: estimate,
  usd: estimate.nullable(),
  /** `at_least`: of shorter timeouts only the low end is promised. `unknown`: the awake times are unknown. */
  parts: z.array(
    z.object({
      part: z.enum(['sizes', 'timeouts']),
      figure: z.enum(['replayed', 'at_least', 'estimate', 'unknown']),
      cu_hours: estimate,
    }),
  ),
});
export type CounterfactualDocument = z.infer<typeof CounterfactualDocument>;

/** Measured compute of this billing month, `from` to `to`, added up at `at`. Storage and transfer are not in it. */
export const CostsDocument = z
  .object({
    at: instant,
    from: instant,
    to: instant,
    known_until: instant,
    /** Most CU-hours first. */
    owners: z.array(OwnerCostsDocument),
    total: z.object(sums),
    /** Projects whose owner is not known yet, as after a first start: sums by owner lack them. Absent: none. */
    unread_projects: z.number().exactOptional(),
    /** In observe mode: the saving that enforcing would have made; null otherwise. */
    would_have_saved: CounterfactualDocument.nullable(),
  })
  .meta({ id: 'Costs' });
export type CostsDocument = z.infer<typeof CostsDocument>;

/** A budget in one account in this billing month: amounts in the unit of `month`. */
export const BudgetDocument = z
  .object({
    budget: text,
    account: text,
    month: z.object({ unit: z.enum(['cu_hours', 'usd']), amount: z.number() }),
    from: instant,
    to: instant,
    known_until: instant,
    spent: z.number().nullable(),
    projected: ProjectionDocument.nullable(),
    unknown_hours: z.number(),
    /** Steps of which receivers were notified this month, such as `80% projected`. */
    notified: texts,
    /** Steps that limit now. `until`: the end of the month, or the instant at which the step ended; computes follow within six hours. */
    limiting: z.array(z.object({ at: z.number(), of: z.enum(['projected', 'spent']), from: instant, until: instant })),
  })
  .meta({ id: 'Budget', description: 'A budget in one account, in CU-hours or dollars.' });
export type BudgetDocument = z.infer<typeof BudgetDocument>;

/** One number for each day (UTC) from `first_day` on. */
const DailyDocument = z.object({
  cu_hours: z.array(z.number()),
  /** Null without a price. */
  usd: z.array(z.number()).nullable(),
});
export type DailyDocument = z.infer<typeof DailyDocument>;

const { cu_hours, usd, unknown_hours } = sums;
const ofProject = { project_id: text, project_name: text, owner: text, cu_hours, usd, unknown_hours };

/** The parts of `CostsDocument` by day and by project. */
export const CostDetailDocument = z
  .object({
    /** `2026-11-01`: the first of this billing month, or 28 days ago if that is earlier. The last day is yesterday. */
    first_day: text,
    /** Most CU-hours first. */
    owners: z.array(DailyDocument.extend({ owner: text })),
    /** The costs of this billing month; a project whose branches have several owners has one entry for each. */
    projects: z.array(z.object(ofProject)),
    /** The number of entries beyond the first 1,000. */
    projects_left_out: z.number(),
  })
  .meta({ id: 'CostDetail' });
export type CostDetailDocument = z.infer<typeof CostDetailDocument>;

/** The usage of a branch (all its computes) in this billing month. The last day is today, as far as known. */
export const BranchCostDocument = z.object({
  first_day: text,
  known_until: instant,
  cu_hours,
  usd,
  unknown_hours,
  days: DailyDocument,
});
export type BranchCostDocument = z.infer<typeof BranchCostDocument>;
