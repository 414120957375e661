/**
 * Findings of the HTTP API, the page and `ebb recommend --json`. Forms as in documents.ts. A month has 730 h. Of a figure `at_least` only
 * the low end is promised.
 */
import { z } from 'zod';
import { CHANGE_BY, FINDING_KINDS, type FindingKind } from '../domain/recommend/finding.ts';
import { estimate, instant, text } from './document-fields.ts';
import { staleness } from './documents.ts';

const range = z.object({ low: z.number(), high: z.number() });
// biome-ignore lint/suspicious/noThenProperty: the name of the field; a schema is never awaited
const change = z.object({ now: z.number(), then: range });
const fields = z.object({
  suspend_timeout_seconds: z.number().exactOptional(),
  min_cu: z.number().exactOptional(),
  max_cu: z.number().exactOptional(),
});
const figure = z
  .enum(['measured', 'replayed', 'at_least', 'estimate', 'unknown'])
  .meta({ description: 'What the figure promises: docs/recommend.md.' });

const FindingDocument = z
  .object({
    finding: z.enum(FINDING_KINDS),
    project_id: text,
    project_name: text,
    compute_id: text,
    owner: text,
    /** The fields that would change. */
    now: fields,
    proposed: fields,
    figure,
    /** In dollars where the plan is known. */
    saves: z.object({ cu_hours_month: estimate, usd_month: estimate.nullable() }),
    starts_month: change.nullable(),
    awake_share: change.nullable(),
    evidence: z.array(text),
    risk: text,
    policy: text.nullable().meta({
      description:
        'The text of a policy file. Null if no policy can make the change, or if done_by, set_by or may_be_set_by is set.',
    }),
    done_by: text.exactOptional().meta({ description: 'The policy that makes the change already.' }),
    set_by: text
      .exactOptional()
      .meta({ description: 'The policy or hold that sets another value: the change is to be made there.' }),
    may_be_set_by: text
      .exactOptional()
      .meta({ description: "Policies that are staged or can't be read, and may set the field." }),
  })
  .meta({ id: 'Finding' });
export type FindingDocument = z.infer<typeof FindingDocument>;

/** The total of the findings with the same `figure`, which says how certain a number is. Totals of different certainty are never added. */
export interface FigureTotal extends Omit<z.infer<typeof WasteTotal>, 'by_policy' | 'change_by'> {}

const WasteTotal = z.object({
  figure,
  by_policy: z.boolean().meta({ description: 'False: people have to do something, such as to change a policy.' }),
  change_by: z.enum(CHANGE_BY).meta({ description: 'What makes the change.' }),
  findings: z.number(),
  cu_hours_month: estimate,
  /** The sum of the findings with a price; null if none has. */
  usd_month: estimate.nullable(),
});
export type WasteTotal = z.infer<typeof WasteTotal>;

/** The findings of the whole fleet, those that may save most first. */
export const WasteDocument = z
  .object({
    /** The instants of the oldest and the newest stored analysis: each project is analysed about once a day. Null before the first. */
    from: instant.nullable(),
    to: instant.nullable(),
    /** The number of analysed projects. */
    projects: z.number(),
    matched: z.number(),
    /** From 1. */
    page: z.number(),
    pages: z.number(),
    /** The totals of all findings that matched. */
    totals: z.array(WasteTotal),
    /** The owners of all findings, matching or not. */
    owners: z.array(text),
    findings: z.array(FindingDocument),
    ...staleness,
  })
  .meta({ id: 'Waste' });
export type WasteDocument = z.infer<typeof WasteDocument>;

export interface WasteQuery {
  /** A whole name. */
  owner?: string | undefined;
  finding?: FindingKind | undefined;
  /** From 1; one beyond the end gives the last. */
  page: number;
}

/** Findings on a page. */
export const FINDINGS_PER_PAGE = 100;
