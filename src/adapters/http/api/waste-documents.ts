/** What would cost less, as schemas. */
import { z } from 'zod';
import { FINDING_KINDS } from '../../../domain/recommend/finding.ts';
import type { FindingDocument, WasteDocument } from '../../../ports/waste.ts';
import { age, instant, text } from './documents.ts';

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

const Finding: z.ZodType<FindingDocument> = z
  .object({
    finding: z.enum(FINDING_KINDS),
    project_id: text,
    project_name: text,
    compute_id: text,
    owner: text,
    now: fields,
    proposed: fields,
    figure,
    saves: z.object({ cu_hours_month: range, usd_month: range.nullable() }),
    starts_month: change.nullable(),
    awake_share: change.nullable(),
    evidence: z.array(text),
    risk: text,
    policy: text.nullable().meta({ description: 'The text of a policy file; null where no policy does it.' }),
  })
  .meta({ id: 'Finding' });

export const Waste: z.ZodType<WasteDocument> = z
  .object({
    from: instant.nullable(),
    to: instant.nullable(),
    projects: z.number(),
    matched: z.number(),
    page: z.number(),
    pages: z.number(),
    totals: z.array(
      z.object({
        figure,
        by_policy: z.boolean(),
        findings: z.number(),
        cu_hours_month: range,
        usd_month: range.nullable(),
      }),
    ),
    owners: z.array(text),
    findings: z.array(Finding),
    ...age,
  })
  .meta({ id: 'Waste' });
