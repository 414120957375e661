import { ascending } from '../../domain/sorted.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { OperatorResult } from '../../ports/operator.ts';
import {
  FINDINGS_PER_PAGE,
  type FindingDocument,
  type WasteDocument,
  type WasteQuery,
  type WasteTotal,
} from '../../ports/waste.ts';
import { readFindings, totalsByFigure } from '../recommend/finding-document.ts';
import type { OperatorParts } from './parts.ts';

/** The leader's findings over all projects: one page, and the sums of all. */
export async function waste(
  { store }: OperatorParts,
  { owner, finding, page }: WasteQuery,
): Promise<OperatorResult<WasteDocument>> {
  const found = [...(await readFindings(store)).values()];
  const instants = found.map(({ atMs }) => atMs).sort((a, b) => a - b);
  const [first, last] = [instants[0], instants.at(-1)];
  const all = found.flatMap(({ findings }) => findings);
  const matched = all.filter(
    (one) => (owner === undefined || one.owner === owner) && (finding === undefined || one.finding === finding),
  );
  const pages = Math.max(1, Math.ceil(matched.length / FINDINGS_PER_PAGE));
  const shown = Math.min(page, pages);
  const start = (shown - 1) * FINDINGS_PER_PAGE;
  const ranked = matched.toSorted((a, b) => savedBy(b) - savedBy(a) || ascending(a.compute_id, b.compute_id));
  return {
    ok: true,
    value: {
      from: first === undefined ? null : isoInstant(first),
      to: last === undefined ? null : isoInstant(last),
      projects: found.length,
      matched: matched.length,
      page: shown,
      pages,
      totals: totalsOf(matched),
      owners: [...new Set(all.map((one) => one.owner))].toSorted(ascending),
      findings: ranked.slice(start, start + FINDINGS_PER_PAGE),
    },
  };
}

/** As `ebb recommend` ranks them: by dollars, or by CU-hours where no price is known. */
function savedBy({ saves }: FindingDocument): number {
  return (saves.usd_month ?? saves.cu_hours_month).mid;
}

/** Totals, apart by what policies can change and what only people can. */
function totalsOf(findings: readonly FindingDocument[]): WasteTotal[] {
  return [true, false].flatMap((by_policy) =>
    totalsByFigure(
      findings.filter(({ policy, done_by }) => (policy !== null || done_by !== undefined) === by_policy),
    ).map((total) => ({
      ...total,
      by_policy,
    })),
  );
}
