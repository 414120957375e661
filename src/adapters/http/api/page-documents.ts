/** What the status page shows, as schemas. */
import { z } from 'zod';
import type {
  ComputeDetailDocument,
  FleetDocument,
  FleetRowDocument,
  WeekDocument,
} from '../../../ports/status-page.ts';
import { age, computeFields, Decision, given, Hold, instant, Operation, text } from './documents.ts';

const Segment = z.object({ from: instant, to: instant, ...given, policies: z.array(text) });

const Week: z.ZodType<WeekDocument> = z
  .union([
    z.object({ state: z.literal('known'), segments: z.array(Segment) }),
    z.object({ state: z.enum(['not_yet', 'too_often']) }),
  ])
  .meta({ id: 'Week' });

const rowFields = { ...computeFields, branch_name: text.nullable(), owner: text, week: Week };

const totals = { computes: z.number(), active: z.number(), min_cu: z.number(), max_cu: z.number() };

/** As the ports have it, but for `reasons`: its codes may be those of another version. */
type Loose<T> = Omit<T, 'reasons' | 'decisions' | 'computes'>;

const FleetRow: z.ZodType<Loose<FleetRowDocument>> = z.object(rowFields).meta({ id: 'FleetRow' });

export const Fleet: z.ZodType<Loose<FleetDocument>> = z
  .object({
    at: instant,
    known: z.number(),
    matched: z.number(),
    page: z.number(),
    pages: z.number(),
    next_hour: z.object({ computes: z.number(), first: instant.nullable() }),
    totals: z.object(totals),
    groups: z.array(z.object({ name: text, ...totals })),
    owners: z.array(text),
    computes: z.array(FleetRow),
    ...age,
  })
  .meta({ id: 'Fleet' });

const value = z.union([z.object({ min_cu: z.number(), max_cu: z.number() }), z.number(), z.null()]);

const TraceStep = z.object({
  group: text,
  code: text,
  policy: text.exactOptional(),
  mode: text.exactOptional(),
  hold: text.exactOptional(),
  before: value.exactOptional(),
  after: value.exactOptional(),
  connections: z.object({ peak: z.number(), need: z.number(), usable: z.number() }).exactOptional(),
  minimum: z.object({ min_cu: z.number(), allows_cu: z.number() }).exactOptional(),
  message: text,
});

export const ComputeDetail: z.ZodType<Loose<ComputeDetailDocument>> = z
  .object({
    at: instant,
    ...rowFields,
    region_id: text,
    disabled: z.boolean(),
    trace: z.array(TraceStep),
    holds: z.array(Hold),
    operations: z.array(Operation),
    decisions: z.array(Decision),
    ...age,
  })
  .meta({ id: 'ComputeDetail' });
