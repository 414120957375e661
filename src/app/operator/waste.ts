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

/** One page of the leader's findings over all projects, and the sums of all that match. */
export async function waste(
  { store }: OperatorParts,
  { owner, finding, page }: WasteQuery,
): Promise<OperatorResult<WasteDocument>> {
  const analysed = [...(await readFindings(store)).values()];
  const instants = analysed.map(({ atMs }) => atMs).sort((a, b) => a - b);
  const [first, last] = [instants[0], instants.at(-1)];
  const all = analysed.flatMap(({ findings }) => findings);
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
      projects: analysed.length,
      matched: matched.length,
      page: shown,
      pages,
      totals: totalsOf(matched),
      owners: [...new Set(all.map((one) => one.owner))].toSorted(ascending),
      findings: ranked.slice(start, start + FINDINGS_PER_PAGE),
    },
  };
}

/** Ranks as `ebb recommend` does: by dollars, or by CU-hours without a price. */
function savedBy({ saves }: FindingDocument): number {
  return (saves.usd_month ?? saves.cu_hours_month).mid;
}

/** Separate totals for findings that policies can mend and for those that only people can. */
function totalsOf(findings: readonly FindingDocument[]): WasteTotal[] {
  return [true, false].flatMap((by_policy) => {
    const some = findings.filter(({ policy, done_by }) => (policy !== null || done_by !== undefined) === by_policy);
    return totalsByFigure(some).map((total) => ({ ...total, by_policy }));
  });
}
